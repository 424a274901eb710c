// The table of the page's sections: what each is called, how it is read, and which figures it has.
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

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
     "Weak scaling: each rank has the same work. The dashed line grows with the number of processors or SMs; "
     "efficiency is the rate of each of them against one rank. What rests on an unreliable timing, or is "
     "impossible beyond its own uncertainty (an efficiency above 100%, exposed communication below 0%), is unknown.",
     {{workloads_on_several_ranks, draw_scaling}}},
    {"bus-bandwidth",
     "Bus bandwidth against message size",
     "What crosses the links, by nccl-tests' definition, so that collectives and rank counts can be compared with each "
     "other and with the link. Small messages are bound by latency: the slope at the left.",
     {{collectives_with_a_curve, draw_bus_curve}, {collectives_of_few_sizes, draw_bus_bars}}},
    {"error-budget",
     "Error budget",
     "The largest error of each kind of op as a share of what its arithmetic allows: 0 is exact, 1 the whole bound. "
     "Above 1 is marked, and its case failed.",
     {},
     error_budget_of},
    {"breakdown",
     "Training step by op",
     "Each op timed alone, as a share of the whole step. What is left over has a sign: gaps between launches are above "
     "zero; below zero the ops ran faster in the step, overlapped or with warm caches; it is unknown where it "
     "may be off by more than 25 points.",
     {{workloads_with_a_breakdown, draw_breakdown}}},
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

}  // namespace

std::vector<Section> sections_of(const Material& material) {
  std::vector<Section> sections;
  for (const SectionSpec& spec : specs) sections.push_back(section_of(spec, material));
  return sections;
}

}  // namespace gpubench::page
