#include "harness/page/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

struct PartSpec {
  const char* title = "";
  const char* lead = "";
  void (*tables)(Html& html, const Material& material) = nullptr;
  std::vector<Entries> (*charts)(std::span<const Side> sides) = nullptr;
  void (*draw)(std::span<const Entry> cases, std::vector<Figure>& figures) = nullptr;
  std::vector<Figure> (*of_report)(const Side& side) = nullptr;
  /// Any parts, with their titles and leads.
  void (*parts)(std::vector<SectionPart>& parts, const Material& material) = nullptr;
};

struct SectionSpec {
  const char* key;
  const char* title;
  std::vector<PartSpec> parts;
};

const SectionSpec specs[] = {
    {"checks", "Checks", {{.tables = add_coverage}, {.title = "Failures", .tables = add_failures}}},
    {"comparison", "How much faster", {{.parts = add_comparison}}},
    {"throughput",
     "Throughput",
     {{.tables = add_speed},
      {.title = "Best rates",
       .lead = "The fastest case of each workload in each precision. The outline behind a bar is the device's "
               "published peak, if known.",
       .charts = bests_by_suite,
       .draw = draw_bests},
      {.title = "Against size",
       .lead = "Each op by itself, from small to large. Further right is more work in one run, higher is faster; the "
               "dashed line is the device's published peak, if known.",
       .charts = workloads_with_a_curve,
       .draw = draw_size_curve},
      {.title = "Against batch size",
       .lead = "The same layer with more rows, images or sequences at once. Where the line is flat, a larger batch is "
               "no faster.",
       .charts = shapes_in_batches,
       .draw = draw_batch_curve}}},
    {"roofline",
     "Roofline",
     {{.lead =
           "The slope is the limit of memory, the flat part that of arithmetic; a case just under the roof has little "
           "left to gain. A measured roof is the best copy or triad and the best matrix product of this run.",
       .tables = count_cases_above_the_roof,
       .charts = recipes_with_a_roof,
       .draw = draw_roofline}}},
    {"scaling",
     "Scaling and links",
     {{.lead =
           "Each rank has the work of one rank alone; in steps named strong, shared, stages and sequences, and with "
           "tp, pp or cp, a part of it. The dashed line grows with the number of processors or SMs; efficiency is the "
           "rate of each of them relative to one rank. Values from unreliable timings, and values that are impossible "
           "beyond their uncertainty (an efficiency above 100%, exposed communication below 0%), are unknown.",
       .charts = workloads_on_several_ranks,
       .draw = draw_scaling},
      {.title = "Bus bandwidth",
       .lead = "Bus bandwidth by nccl-tests' definition, comparable between collectives, rank counts and the link. "
               "Small messages are limited by latency: the slope at the left.",
       .charts = collectives_by_curve,
       .draw = draw_bus},
      {.title = "Links between ranks",
       .lead = "Pairs of ranks exchange a message, all pairs of a round at once. Each cell is the rate of a link as a "
               "share of the median one's. Links over 5% behind in most rounds are marked; ~: too uncertain to tell.",
       .of_report = links_of}}},
    {"error-budget",
     "Error budget",
     {{.lead = "The largest error of each kind of op as a share of its bound: 0 is exact, 1 the whole bound. Values "
               "above 1 are marked; their cases failed.",
       .of_report = error_budget_of},
      {.title = "Arithmetic",
       .lead = "The arithmetic of the timed plans, read from special data: how they multiply and add, how many bits a "
               "running sum keeps, and in which order they add. The rate is that of the fastest case of this op alone.",
       .tables = add_arithmetic}}},
    {"breakdown",
     "Breakdown of training steps",
     {{.lead = "Each op timed alone, as a share of the whole step: the largest step of each workload in each "
               "precision. \"Left over\" has a sign: positive for gaps between launches; negative if the ops ran "
               "faster in the step, overlapped or with warm caches; unknown if it may be off by more than 25 points. "
               "Below the charts: the same by layer, and for every other step.",
       .charts = programs_by_suite,
       .draw = draw_breakdown},
      {.title = "Memory", .charts = programs_by_suite, .draw = draw_memory}}},
    {"energy",
     "Energy and cost",
     {{.lead = "Work per joule by the device's own energy counter, over 2 s or more of each case. Longer is better.",
       .charts = cases_with_energy,
       .draw = draw_energy},
      {.parts = add_cost}}},
    {"cases", "All cases", {{.tables = add_all_cases}}},
    {"environment", "Environment", {{.tables = add_environment}}},
};

void add_parts(std::vector<SectionPart>& parts, const PartSpec& spec, const Material& material) {
  if (spec.parts != nullptr) return spec.parts(parts, material);
  SectionPart part{spec.title, spec.lead};
  if (spec.tables != nullptr) spec.tables(part.tables, material);
  if (spec.charts != nullptr) {
    for (const Entries& chart : spec.charts(material.sides)) spec.draw(chart, part.figures);
  }
  if (spec.of_report == nullptr) return parts.push_back(std::move(part));
  for (const Side& side : material.sides) {
    part.figures = spec.of_report(side);
    if (part.figures.empty()) continue;
    if (!side.letter.empty()) part.title = fmt::format("{}{}{}", spec.title, *spec.title ? ": " : "", side.name);
    parts.push_back(std::exchange(part, {}));
  }
}

std::vector<Section> sections_of(const Material& material) {
  std::vector<Section> sections;
  for (const SectionSpec& spec : specs) {
    Section& section = sections.emplace_back(Section{spec.key, spec.title, {}});
    for (const PartSpec& part : spec.parts) add_parts(section.parts, part, material);
  }
  return sections;
}

// "2 reports", "3 implementations" of one report.
std::string counted_sides(std::span<const Side> sides) {
  const auto is_part = [](const Side& side) { return side.part != nullptr; };
  const bool parts = std::all_of(sides.begin(), sides.end(), is_part);
  return counted(sides.size(), parts ? "implementation" : "report");
}

void add_summary(Html& html, std::span<const Side> sides) {
  html.raw("<section id=\"summary\" aria-label=\"Summary\">\n<div id=\"verdict\">\n");
  add_verdict(html, sides);
  html.raw("</div>\n<div class=\"digest\">\n<div class=\"told\">\n");
  add_bests(html, sides);
  html.raw("</div>\n<div>\n");
  add_first_failures(html, sides);
  add_machine(html, sides);
  html.raw("</div>\n</div>\n</section>\n");
}

}  // namespace

std::vector<Section> report_sections(std::span<const Report> reports, const PageOptions& options) {
  const std::vector<Side> sides = sides_of(reports, options.labels);
  return sections_of({sides, comparisons_of(sides), options});
}

std::string report_page(std::span<const Report> reports, const PageOptions& options) {
  const std::vector<Side> sides = sides_of(reports, options.labels);
  Document page;
  page.heading = sides.size() == 1 ? sides.front().device : counted_sides(sides);
  page.title = "gpubench: " + (sides.size() == 1 ? sides.front().name : page.heading);
  page.made_by.raw("gpubench report");
  add_summary(page.opening, sides);
  page.sections = sections_of({sides, comparisons_of(sides), options});
  page.footer = "Made by gpubench report. Only cases that passed their check are in a chart of rates or times.";
  return html_of(std::move(page));
}

std::vector<Drawing> report_drawings(std::span<const Report> reports, const PageOptions& options) {
  return drawings_of(report_sections(reports, options));
}

}  // namespace gpubench::page
