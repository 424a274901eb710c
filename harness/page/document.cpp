// report_page(), report_drawings(): the table of sections, and how they are put together.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/chart/chart.h"
#include "harness/page/html.h"
#include "harness/page/page.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

/// Charts that are drawn in the same way.
struct CaseFigures {
  std::vector<Entries> (*charts)(std::span<const Side> sides);               ///< the cases of each chart
  void (*draw)(std::span<const Entry> cases, std::vector<Figure>& figures);  ///< appends the figures of one chart's
};

/// A section of the page. Its figures are of cases, of one report each, or whatever `finish` adds.
struct SectionSpec {
  const char* key;
  const char* title;
  const char* lead;
  std::vector<CaseFigures> figures{};
  /// The figures of one report, a group each; `drawn` is how many figures the reports before it have.
  std::vector<Figure> (*of_report)(const Side& side, std::size_t drawn) = nullptr;
  /// Adds what depends on the reports: words of the lead, a notice, figures.
  void (*finish)(Section& section, const Material& material) = nullptr;
};

// The sections in the order of the page.
const SectionSpec specs[] = {
    {"throughput",
     "Throughput against size",
     "Each op by itself, from small to large. Further right is more work in one run, higher is faster; where the "
     "device's published peak is known it is the dashed line.",
     {{workloads_with_a_curve, draw_size_curve}, {few_sizes_by_unit, draw_few_sizes}}},
    {"batch",
     "Throughput against batch size",
     "The same layer with more rows, images or sequences at once. Where the line turns flat, a larger batch no longer "
     "fills the device better.",
     {{shapes_in_batches, draw_batch_curve}}},
    {"precision",
     "Precisions against peak",
     "The fastest case of each suite in each precision. The outline behind a bar is the device's published peak, where "
     "one is known.",
     {{bests_by_unit, draw_bests}}},
    {"roofline",
     "Roofline",
     "The slope is what memory allows, the flat what arithmetic allows; a case just under the roof has little left to "
     "gain. A measured roof is the best copy or triad and the best matrix product of this run.",
     {{recipes_with_a_roof, draw_roofline}},
     nullptr,
     count_cases_above_the_roof},
    {"scaling",
     "Scaling over ranks",
     "Each rank has the work that one has alone; in steps named strong, shared, stages and sequences, and with tp, pp "
     "or cp, its part of that. The dashed line grows with the number of processors or SMs; "
     "efficiency is the rate of each of them against one rank. What rests on an unreliable timing, or is "
     "impossible beyond its own uncertainty (an efficiency above 100%, exposed communication below 0%), is unknown.",
     {{workloads_on_several_ranks, draw_scaling}}},
    {"bus-bandwidth",
     "Bus bandwidth against message size",
     "What crosses the links, by nccl-tests' definition, so that collectives and rank counts can be compared with each "
     "other and with the link. Small messages are bound by latency: the slope at the left.",
     {{collectives_with_a_curve, draw_bus_curve}, {collectives_of_few_sizes, draw_bus_bars}}},
    {"links",
     "Links between ranks",
     "Each two ranks exchange a message, all pairs of a round at once: rank by rank, the rate of a link as a share of "
     "that of the middle one. What is over 5% behind in most rounds is marked; ~: too unsure to tell.",
     {},
     links_of},
    {"error-budget",
     "Error budget",
     "The largest error of each kind of op as a share of what its arithmetic allows: 0 is exact, 1 the whole bound. "
     "Above 1 is marked, and its case failed.",
     {},
     error_budget_of},
    {"breakdown",
     "What a training step is made of",
     "Each op timed alone, as a share of the whole step. What is left over has a sign: gaps between launches are above "
     "zero; below zero the ops ran faster in the step, overlapped or with warm caches; it is unknown where it "
     "may be off by more than 25 points. By layer, and by what memory is for: the largest step of each precision.",
     {{workloads_with_a_breakdown, draw_breakdown},
      {workloads_with_a_breakdown, draw_layers},
      {workloads_with_a_breakdown, draw_memory}}},
    {"comparison",
     "Comparison",
     "How fast the other report is as a multiple of the first: right of 1 is faster. A line that crosses 1 shows no "
     "difference; the diamond is the geometric mean of a suite.",
     {},
     nullptr,
     add_comparison},
    {"noise",
     "Noise",
     "Every dot is a sample, every column a round; 100% is the case's median. One tight band is steady, two bands are "
     "two modes, a slope is a drift.",
     {},
     noise_strips_of},
    {"device",
     "How busy the machine was",
     "The rounds one after another, case by case (they were interleaved when they ran), bands are suites. Where some "
     "task waited for a processor, times are longer than the device's own.",
     {},
     device_over_time_of,
     name_the_clocks},
    {"energy",
     "Energy",
     "Work per joule by the device's own energy counter, over 2 s or more of each case. Longer is better.",
     {{cases_with_energy, draw_energy}}},
    {"cost", "Cost", "", {}, nullptr, add_cost},
};

Section section_of(const SectionSpec& spec, const Material& material) {
  Section section{spec.key, spec.title, spec.lead, {}};
  FigureGroup of_cases;
  for (const CaseFigures& figures : spec.figures) {
    for (const Entries& chart : figures.charts(material.sides)) figures.draw(chart, of_cases.figures);
  }
  if (!of_cases.figures.empty()) section.groups.push_back(std::move(of_cases));
  std::size_t drawn = 0;
  for (const Side& side : material.sides) {
    if (spec.of_report == nullptr) break;
    FigureGroup group{side.letter.empty() ? "" : side.name, spec.of_report(side, drawn)};
    drawn += group.figures.size();
    if (!group.figures.empty()) section.groups.push_back(std::move(group));
  }
  if (spec.finish != nullptr) spec.finish(section, material);
  return section;
}

std::string drawn(const Figure& figure, const std::string& id, chart::Placement placement) {
  return std::visit([&](const auto& chart) { return chart::svg(chart, id, placement); }, figure.chart);
}

// Two shapes may have one slug.
std::string unused(const std::string& wanted, std::set<std::string>& used) {
  std::string name = wanted;
  for (int number = 2; !used.insert(name).second; ++number) name = fmt::format("{}-{}", wanted, number);
  return name;
}

const std::string& title_of(const Figure& figure) {
  return std::visit([](const auto& chart) -> const std::string& { return chart.title; }, figure.chart);
}

// Each figure once; those whose chart has nothing to draw do not appear, and take no name from others.
void draw(Section& section, chart::Placement placement, std::set<std::string>& used) {
  for (FigureGroup& group : section.groups) {
    for (Figure& figure : group.figures) {
      figure.id = unused(section.key + "-" + figure.key, used);
      figure.svg = drawn(figure, figure.id, placement);
      if (figure.svg.empty()) used.erase(figure.id);
    }
    std::erase_if(group.figures, [](const Figure& figure) { return figure.svg.empty(); });
  }
}

std::vector<Section> drawn_sections(const Material& material, chart::Placement placement) {
  std::vector<Section> sections;
  std::set<std::string> used;
  for (const SectionSpec& spec : specs) draw(sections.emplace_back(section_of(spec, material)), placement, used);
  std::erase_if(sections, [](const Section& section) { return section.empty(); });
  return sections;
}

void add_head(Html& html, const std::string& title) {
  html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
  html.raw(
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src '")
      .raw(script_hash())
      .raw("'; base-uri 'none'; form-action 'none'\">\n");
  html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
  html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
  html.element("title", title)
      .raw("\n<style>\n")
      .raw(chart::chart_style())
      .raw(style_sheet())
      .raw("</style>\n</head>\n");
}

// "2 reports", "3 implementations" of one report.
std::string counted_sides(std::span<const Side> sides) {
  const auto is_part = [](const Side& side) { return side.part != nullptr; };
  const bool parts = std::all_of(sides.begin(), sides.end(), is_part);
  return counted(sides.size(), parts ? "implementation" : "report");
}

// The first screen.
void add_summary(Html& html, std::span<const Side> sides, std::span<const Entry> failures) {
  html.raw("<section id=\"summary\" aria-label=\"Summary\">\n<div id=\"verdict\">\n");
  add_verdict(html, sides);
  html.raw("</div>\n<div class=\"digest\">\n<div class=\"told\">\n");
  add_bests(html, sides);
  html.raw("</div>\n<div>\n");
  add_first_failures(html, failures);
  add_machine(html, sides);
  html.raw("</div>\n</div>\n</section>\n");
}

/// What follows the summary.
struct Contents {
  Html links;
  Html sections;
};

// A section and its link; neither where it is empty.
void add_section(Contents& contents, const std::string& key, const std::string& title, std::string_view content) {
  if (content.empty()) return;
  contents.links.raw("<li><a href=\"#").text(key).raw("\">").text(title).raw("</a></li>\n");
  contents.sections.raw("<section id=\"").text(key).raw("\">\n").element("h2", title).raw("\n");
  contents.sections.raw(content).raw("</section>\n");
}

template <class Add, class Of>
std::string content(const Add& add, const Of& of) {
  Html html;
  add(html, of);
  return html.take();
}

void add_figures(Html& html, const Section& section) {
  if (!section.lead.empty()) html.element("p", section.lead, "class=\"lead\"").raw("\n");
  if (!section.notice.empty()) html.element("p", section.notice, "class=\"warning\"").raw("\n");
  for (const FigureGroup& group : section.groups) {
    if (group.figures.empty()) continue;
    if (!group.title.empty()) html.element("h3", group.title).raw("\n");
    html.raw("<div class=\"figures\">\n");
    for (const Figure& figure : group.figures) {
      html.raw("<figure>\n").raw(figure.svg).raw("\n");
      DataTable table = figure.table;
      table.title = "Data: " + table.title;
      add_folded_table(html, table, fmt::format("Data of {}", title_of(figure)));
      html.raw("</figure>\n");
    }
    html.raw("</div>\n");
  }
}

}  // namespace

std::vector<Section> report_sections(std::span<const Report> reports, const PageOptions& options,
                                     chart::Placement placement) {
  const std::vector<Side> sides = sides_of(reports, options.labels);
  return drawn_sections({sides, comparisons_of(sides), options}, placement);
}

std::string report_page(std::span<const Report> reports, const PageOptions& options) {
  const std::vector<Side> sides = sides_of(reports, options.labels);
  const Comparisons comparisons = comparisons_of(sides);
  const Entries failures = failures_of(sides);
  Contents contents;
  add_section(contents, "ratios", "How much faster", content(add_ratios, comparisons));
  add_section(contents, "speed", "How fast", content(add_speed, sides));
  add_section(contents, "facts", "Checks", content(add_facts, sides));
  add_section(contents, "failures", "Failures", content(add_failures, failures));
  for (const Section& section : drawn_sections({sides, comparisons, options}, chart::Placement::page))
    add_section(contents, section.key, section.title, content(add_figures, section));
  add_section(contents, "cases", "All cases", content(add_all_cases, sides));
  add_section(contents, "arithmetic", "Arithmetic", content(add_arithmetic, sides));
  add_section(contents, "environment", "Environment", content(add_environment, sides));
  Html html;
  const std::string title = sides.size() == 1 ? sides.front().device : counted_sides(sides);
  add_head(html, "gpubench: " + (sides.size() == 1 ? sides.front().name : title));
  html.raw("<body>\n<a class=\"skip\" href=\"#main\">To the results</a>\n");
  html.raw("<header class=\"masthead\">\n<p class=\"eyebrow\">gpubench report</p>\n").element("h1", title);
  html.raw("\n</header>\n<main id=\"main\">\n");
  add_summary(html, sides, failures);
  html.raw("<nav aria-label=\"Sections\"><ul>\n").raw(contents.links.take()).raw("</ul></nav>\n");
  html.raw(contents.sections.take());
  html.raw(
      "</main>\n<footer><p>Made by gpubench report. Only cases that passed their check are in a chart of rates or "
      "times.</p></footer>\n");
  html.raw("<script>").raw(script()).raw("</script>\n</body>\n</html>\n");
  return html.take();
}

std::vector<Drawing> report_drawings(std::span<const Report> reports, const PageOptions& options) {
  std::vector<Drawing> drawings;
  for (Section& section : report_sections(reports, options, chart::Placement::file)) {
    for (FigureGroup& group : section.groups) {
      for (Figure& figure : group.figures) drawings.push_back({std::move(figure.id), std::move(figure.svg)});
    }
  }
  return drawings;
}

}  // namespace gpubench::page
