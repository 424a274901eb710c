#include "harness/page/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gpubench::page {
namespace {

// A key that occurs twice gets a number: shapes may have the same letters and digits.
std::string unused(const std::string& wanted, std::set<std::string>& used) {
  std::string name = wanted;
  for (int number = 2; !used.insert(name).second; ++number) name = fmt::format("{}-{}", wanted, number);
  return name;
}

// A figure without anything to draw does not use up its name.
void draw(Figure& figure, const std::string& section, chart::Placement placement, std::set<std::string>& used) {
  figure.id = unused((section.empty() ? "" : section + "-") + figure.key, used);
  figure.svg = std::visit([&](const auto& chart) { return chart::svg(chart, figure.id, placement); }, figure.chart);
  if (figure.svg.empty()) used.erase(figure.id);
}

const std::string& title_of(const Figure& figure) {
  return std::visit([](const auto& chart) -> const std::string& { return chart.title; }, figure.chart);
}

void add_head(Html& html, const Document& document) {
  html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; ");
  if (document.interactive) html.raw("script-src '").raw(script_hash()).raw("'; ");
  html.raw("base-uri 'none'; form-action 'none'\">\n");
  html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
  html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
  html.element("title", document.title).raw("\n<style>\n");
  html.raw(chart::chart_style()).raw(style_sheet()).raw("</style>\n</head>\n");
}

void add_part(Html& html, SectionPart part) {
  if (!part.title.empty()) html.element("h3", part.title).raw("\n");
  if (!part.lead.empty()) html.element("p", part.lead, "class=\"lead\"").raw("\n");
  if (!part.notice.empty()) html.element("p", part.notice, "class=\"warning\"").raw("\n");
  html.raw(std::move(part.tables));
  if (part.figures.empty()) return;
  html.raw("<div class=\"figures\">\n");
  for (Figure& figure : part.figures) {
    html.raw("<figure>\n").raw(figure.svg).raw("\n");
    figure.table.title = "Data: " + figure.table.title;
    add_folded_table(html, figure.table, fmt::format("Data of {}", title_of(figure)));
    html.raw("</figure>\n");
  }
  html.raw("</div>\n");
}

void add_links(Html& html, const std::vector<Section>& sections) {
  html.raw("<nav aria-label=\"Sections\"><ul>\n");
  for (const Section& section : sections)
    html.raw("<li><a href=\"#").text(section.key).raw("\">").text(section.title).raw("</a></li>\n");
  html.raw("</ul></nav>\n");
}

}  // namespace

void draw(std::vector<Section>& sections, chart::Placement placement) {
  std::set<std::string> used;
  for (const Section& section : sections) used.insert(section.key);
  for (Section& section : sections) {
    for (SectionPart& part : section.parts) {
      for (Figure& figure : part.figures) draw(figure, section.key, placement, used);
      std::erase_if(part.figures, [](const Figure& figure) { return figure.svg.empty(); });
    }
    std::erase_if(section.parts, [](const SectionPart& part) { return part.empty(); });
  }
  std::erase_if(sections, [](const Section& section) { return section.parts.empty(); });
}

std::vector<Drawing> drawings_of(std::vector<Section> sections) {
  std::vector<Drawing> drawings;
  draw(sections, chart::Placement::file);
  for (Section& section : sections) {
    for (SectionPart& part : section.parts) {
      for (Figure& figure : part.figures) drawings.push_back({std::move(figure.id), std::move(figure.svg)});
    }
  }
  return drawings;
}

std::string html_of(Document document) {
  draw(document.sections, chart::Placement::page);
  Html html;
  add_head(html, document);
  html.raw("<body>\n");
  if (document.interactive) html.raw("<a class=\"skip\" href=\"#main\">To the results</a>\n");
  html.raw("<header class=\"masthead\">\n");
  html.raw("<p class=\"eyebrow\">").raw(std::move(document.made_by)).raw("</p>\n").element("h1", document.heading);
  if (!document.about.empty()) html.raw("\n").element("p", document.about, "class=\"about\"");
  html.raw("\n</header>\n<main id=\"main\">\n").raw(std::move(document.opening));
  if (document.interactive) add_links(html, document.sections);
  for (Section& section : document.sections) {
    html.raw("<section id=\"").text(section.key).raw("\">\n<h2>").id(section.title).raw("</h2>\n");
    for (SectionPart& part : section.parts) add_part(html, std::move(part));
    html.raw("</section>\n");
  }
  html.raw("</main>\n<footer>");
  if (!document.footer.empty()) html.element("p", document.footer);
  html.raw("</footer>\n");
  if (document.interactive) html.raw("<script>").raw(script()).raw("</script>\n");
  html.raw("</body>\n</html>\n");
  return html.take();
}

}  // namespace gpubench::page
