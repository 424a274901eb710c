// The one writer of HTML pages: what a page says, and its document.
//
// A strict content security policy allows a page its own style sheet and our one script, by hash, and nothing else: no
// request leaves it. Everything can be read without scripts. All text of others is escaped where it is written.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "harness/page/chart/chart.h"
#include "harness/page/html.h"

namespace gpubench::page {

using Chart = std::variant<chart::PlotChart, chart::BarChart, chart::StackChart, chart::HeatMap, chart::ForestChart>;

/// One picture and its numbers.
struct Figure {
  std::string key;  ///< letters, digits and dashes
  Chart chart;
  DataTable table;
  std::string id{};   ///< no other figure of the page has it; its file's name. Of draw() on
  std::string svg{};  ///< the chart, drawn. Of draw() on
};

/// What belongs together, such as the figures of one report, in the order in which it is shown.
struct SectionPart {
  std::string title{};   ///< empty: no heading
  std::string lead{};    ///< how to read it, where there is something to read
  std::string notice{};  ///< why something that was asked for is missing
  Html tables{};
  std::vector<Figure> figures{};

  [[nodiscard]] bool empty() const { return notice.empty() && tables.empty() && figures.empty(); }
};

struct Section {
  std::string key;    ///< its anchor, and the beginning of its files' names
  std::string title;  ///< "Roofline"
  std::vector<SectionPart> parts;
};

/// Draws all figures and gives them ids. Figures without anything to draw, and parts and sections that are empty, are
/// left out.
void draw(std::vector<Section>& sections, chart::Placement placement);

/// A chart as a separate file.
struct Drawing {
  std::string name;  ///< "roofline-bf16": letters, digits and dashes, each name once
  std::string svg;
};
[[nodiscard]] std::vector<Drawing> drawings_of(std::vector<Section> sections);

struct Document {
  std::string title;  ///< of the window
  Html made_by;       ///< above the heading
  std::string heading;
  std::string about{};  ///< below the heading
  Html opening{};       ///< before the sections
  std::vector<Section> sections;
  std::string footer{};
  bool interactive = true;  ///< has links to its sections, and the script that sorts tables and reads points
};
[[nodiscard]] std::string html_of(Document document);

}  // namespace gpubench::page
