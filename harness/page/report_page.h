// The page of one report or of several, and its charts as separate files.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/page/document.h"
#include "harness/report/report_json.h"

namespace gpubench::page {

/// What the page is made from in addition to the reports.
struct PageOptions {
  /// Of one device for an hour, in any currency; absent: no costs are shown.
  std::optional<double> price_per_hour{};
  /// Labels for the reports, by letter: "A" -> "driver 580". Untrusted, as all text.
  std::map<std::string, std::string> labels{};
};

/// The whole document: a summary of one screen, then sections. One report or more; sections without data are left out.
/// Several reports are called A, B, ...; the first is what the others are compared with.
[[nodiscard]] std::string report_page(std::span<const Report> reports, const PageOptions& options = {});

/// The charts of the page as separate files.
[[nodiscard]] std::vector<Drawing> report_drawings(std::span<const Report> reports, const PageOptions& options = {});

/// All sections in the order of the page, those that say nothing too.
[[nodiscard]] std::vector<Section> report_sections(std::span<const Report> reports, const PageOptions& options = {});

}  // namespace gpubench::page
