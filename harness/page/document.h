// The writer of HTML pages.
//
// A strict content security policy allows only the page's style sheet and script, by hash, and no request. Everything
// can be read without scripts. Untrusted text is escaped when written.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "harness/page/chart/chart.h"
#include "harness/page/html.h"

namespace gpubench::page {

using Chart = std::variant<chart::PlotChart, chart::BarChart, chart::StackChart, chart::HeatMap, chart::ForestChart>;

struct Figure {
  std::string key;  ///< letters, digits and dashes
  Chart chart;
  DataTable table;
  std::string id{};   ///< unique on the page, name of its file; set by draw()
  std::string svg{};  ///< the chart; set by draw()
};

/// Related figures, such as those of one report.
struct SectionPart {
  std::string title{};
  std::string lead{};    ///< how to read it; may be empty
  std::string notice{};  ///< why a requested part is missing
  Html tables{};
  std::vector<Figure> figures{};

  [[nodiscard]] bool empty() const { return notice.empty() && tables.empty() && figures.empty(); }
};

struct Section {
  std::string key;
  std::string title;
  std::vector<SectionPart> parts;
};

/// Draws all figures and sets their ids. Removes figures without anything to draw, and empty parts and sections.
void draw(std::vector<Section>& sections, chart::Placement placement);

struct Drawing {
  std::string name;  ///< "roofline-bf16": letters, digits and dashes; unique
  std::string svg;
};
[[nodiscard]] std::vector<Drawing> drawings_of(std::vector<Section> sections);

struct Document {
  std::string title;
  Html made_by;  ///< above the heading
  std::string heading;
  std::string about{};  ///< below the heading
  Html opening{};       ///< before the sections
  std::vector<Section> sections;
  std::string footer{};
  bool interactive = true;  ///< with links to sections, and the script that sorts tables and shows points
};
[[nodiscard]] std::string html_of(Document document);

}  // namespace gpubench::page
