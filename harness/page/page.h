// The report page: one self-contained HTML file, and its charts as separate files.
//
// A strict content security policy allows the page its own style sheet and its one script, by hash, and nothing else:
// no request leaves it. Everything can be read without scripts. All text of reports is escaped where it is written.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/chart/chart.h"
#include "harness/report/report_json.h"

namespace gpubench::page {

/// A column of a data table.
struct TableColumn {
  std::string title;
  bool number = false;  ///< right-aligned, in figures of equal width, and sorted by value
  std::string unit{};   ///< what follows the prefix in its cells ("FLOP/s"), so that 2 G sorts after 10 M
};

/// The numbers of a chart, one row each. A row has one cell per column.
struct DataTable {
  std::string title;  ///< what the reader opens: "Data: 12 cases"
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;
  std::string note{};  ///< what all rows have in common: "all: dilation=1, groups=1"
};

using Chart = std::variant<chart::PlotChart, chart::BarChart, chart::StackChart, chart::HeatMap, chart::ForestChart>;

/// One picture and its numbers.
struct Figure {
  std::string key;  ///< letters, digits and dashes; no other figure of its section has it
  Chart chart;
  DataTable table;
  std::string id{};   ///< no other figure of the page has it; its file's name. Of report_sections() on
  std::string svg{};  ///< the chart, drawn. Of report_sections() on
};

/// Figures that belong together, such as those of one report.
struct FigureGroup {
  std::string title{};  ///< empty: no heading
  std::vector<Figure> figures;
};

struct Section {
  std::string key;    ///< its anchor, and the beginning of its files' names
  std::string title;  ///< "Roofline"
  std::string lead;   ///< one or two sentences on how to read it
  std::vector<FigureGroup> groups;
  std::string notice{};  ///< why something that was asked for is missing; shown even without a figure

  /// A section that says nothing is left out of the page.
  [[nodiscard]] bool empty() const {
    if (!notice.empty()) return false;
    for (const FigureGroup& group : groups) {
      if (!group.figures.empty()) return false;
    }
    return true;
  }
};

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

/// A chart of the page as a separate file.
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
