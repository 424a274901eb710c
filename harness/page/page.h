// The report page: one HTML file that needs nothing else, and its charts as files of their own.
//
// A strict content security policy allows the page its own style sheet and its one script, by hash, and nothing else:
// no request leaves it. Without scripts everything is there to read. All text of reports is escaped where it is
// written.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/chart/svg.h"
#include "harness/page/section.h"
#include "harness/report/report_json.h"

namespace gpubench::page {

/// The whole document. One report or more; what they don't hold is left out. Several reports are called A, B, ...; the
/// others are compared with the first.
[[nodiscard]] std::string report_page(std::span<const Report> reports, const PageOptions& options = {});

/// A chart of the page as a file of its own.
struct Drawing {
  std::string name;  ///< "roofline-bf16": letters, digits and dashes, each name once
  std::string svg;
};
[[nodiscard]] std::vector<Drawing> report_drawings(std::span<const Report> reports, const PageOptions& options = {});

/// All sections in the order of the page, their figures drawn; figures without anything to draw, and sections that say
/// nothing, are left out.
[[nodiscard]] std::vector<Section> report_sections(std::span<const Report> reports, const PageOptions& options = {},
                                                   chart::Placement placement = chart::Placement::page);

}  // namespace gpubench::page
