// The report page: one HTML file that needs nothing else, and its charts as files of their own.
//
// A strict content security policy allows the page its own style sheet and its one script, by hash, and nothing else:
// no request leaves it. Without scripts everything is there to read. All text of reports is escaped where it is
// written.
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
  bool number = false;  ///< set to the right, in figures of equal width, and sorted by value
  std::string unit{};   ///< what follows the prefix in its cells ("FLOP/s"), so that 2 G sorts after 10 M
};

/// The numbers of a chart, one row each. A row has one cell per column.
struct DataTable {
  std::string title;  ///< what one opens: "Data: 12 cases"
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;
  std::string note{};  ///< what holds for all rows: "all: dilation=1, groups=1"
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

/// Figures that belong together: those of one report, where there are several.
struct FigureGroup {
  std::string title{};  ///< empty: nothing stands above them
  std::vector<Figure> figures;
};

struct Section {
  std::string key;    ///< its anchor, and the beginning of its files' names
  std::string title;  ///< "Roofline"
  std::string lead;   ///< one or two sentences: how to read it
  std::vector<FigureGroup> groups;
  std::string notice{};  ///< why something that was asked for is not there; stands also where there is no figure

  /// A section that says nothing is left out of the page.
  [[nodiscard]] bool empty() const {
    if (!notice.empty()) return false;
    for (const FigureGroup& group : groups) {
      if (!group.figures.empty()) return false;
    }
    return true;
  }
};

/// What figures take beside the reports.
struct PageOptions {
  /// Of one device for an hour, in whatever currency; absent: nothing is said of cost.
  std::optional<double> price_per_hour{};
  /// What reports of several are called, by letter: "A" -> "driver 580". Untrusted, as all text.
  std::map<std::string, std::string> labels{};
};

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
