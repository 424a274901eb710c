#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/page/document.h"
#include "harness/report/report_json.h"

namespace gpubench::page {

struct PageOptions {
  /// Per device and hour, in any currency; not set: no costs.
  std::optional<double> price_per_hour{};
  /// Labels of reports by letter: "A" -> "driver 580". Untrusted.
  std::map<std::string, std::string> labels{};
};

/// A summary that fits one screen, then sections; those without data are left out. Takes one report or more, called A,
/// B, ...; the others are compared with the first.
[[nodiscard]] std::string report_page(std::span<const Report> reports, const PageOptions& options = {});

[[nodiscard]] std::vector<Drawing> report_drawings(std::span<const Report> reports, const PageOptions& options = {});

/// In page order, empty ones included.
[[nodiscard]] std::vector<Section> report_sections(std::span<const Report> reports, const PageOptions& options = {});

}  // namespace gpubench::page
