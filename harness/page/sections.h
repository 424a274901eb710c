// The parts of a report's page: summary, tables and figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/compare/comparison.h"
#include "harness/page/figure.h"
#include "harness/page/report_page.h"
#include "harness/page/side.h"

namespace gpubench::page {

struct SideComparison {
  const Side* a = nullptr;
  const Side* b = nullptr;
  Comparison comparison;
};

/// All sides compared with the first, or why not.
struct Comparisons {
  std::vector<SideComparison> pairs;
  std::string refusal;
};

/// Empty for fewer than two sides, which must outlive it.
[[nodiscard]] Comparisons comparisons_of(std::span<const Side> sides);

/// A row per suite: the geometric mean of the ratio of speeds B to A with its interval, the numbers of cases faster,
/// slower, same and inconclusive, and cases without a ratio with the reason.
[[nodiscard]] DataTable ratio_table(const SideComparison& pair);

/// The largest gains, then losses, beyond their uncertainty; at most `most` of each.
[[nodiscard]] DataTable changes_table(const SideComparison& pair, std::size_t most = 5);

/// Per pair both tables, and a chart per suite of speed ratios by case (the most different ones) with 95% intervals and
/// harness/compare's words; a diamond for the geometric mean. A notice if reports cannot be compared. Nothing for fewer
/// than two sides.
void add_comparison(std::vector<SectionPart>& parts, const Material& material);

/// Per report: verdict and counts, unreliable timings with reasons, and warnings if its numbers are not results.
void add_verdict(Html& html, std::span<const Side> sides);

/// Per report: the amount judged, and the duration of the run.
void add_coverage(Html& html, const Material& material);

/// The first five failures by name, with the start of the reason, and a link to all.
void add_first_failures(Html& html, std::span<const Side> sides);

/// Details of each failure in plan order, with its rerun line; limited in number.
void add_failures(Html& html, const Material& material);

/// Per report: readings of the probes of matrix product plans, a row per distinct reading, with the rate of the fastest
/// case of this op alone. Nothing without probes.
void add_arithmetic(Html& html, const Material& material);

/// The meaning of words, cases that did not run with reasons (collapsed), and every case in plan order.
void add_all_cases(Html& html, const Material& material);

/// A row per suite and precision, whole training steps first: the geometric mean of rates, the best rate, its share of
/// a ceiling, and cases left out with reasons. The interval of the mean is the mean of the half-widths on the log
/// scale, an upper bound that holds if all cases err together. Rates of items (tokens) are per workload: a token of a
/// block is not one of a model. A precision without any run has no row.
[[nodiscard]] DataTable speed_table(std::span<const Side> sides);

/// The table, and cases that it leaves out; nothing if no case has a rate.
void add_speed(Html& html, const Material& material);

/// A row per suite: its best rate with precision, a column per report, among the cases of speed_table(). For a single
/// report also the case.
[[nodiscard]] DataTable bests_table(std::span<const Side> sides);

/// The table, or a note that no case qualifies.
void add_bests(Html& html, std::span<const Side> sides);

/// Per report: devices with memory, driver and libraries; host; date, tier and version of gpubench. A heading names the
/// device.
void add_machine(Html& html, std::span<const Side> sides);

/// Facts, a column per report: settings other than the defaults, device, sensors during rounds (clocks, power,
/// temperature, throttle reasons, and on a CPU the time that tasks waited for a processor), libraries, host and build.
/// With several reports, rows that differ are marked.
void add_environment(Html& html, const Material& material);

// Figures: the cases of each chart, and the drawing of one chart.

/// A chart per workload with three sizes or more: rate over work per run (FLOP, or bytes for rates in bytes), log-log,
/// a series per precision, and the published peak. Cases of one rank.
[[nodiscard]] std::vector<Entries> workloads_with_a_curve(std::span<const Side> sides);
void draw_size_curve(std::span<const Entry> workload, std::vector<Figure>& figures);
/// A chart per shape with two batch sizes or more that differs in nothing else.
[[nodiscard]] std::vector<Entries> shapes_in_batches(std::span<const Side> sides);
void draw_batch_curve(std::span<const Entry> shape, std::vector<Figure>& figures);

/// A chart per suite and unit: the best reliable rate of each workload in each precision, and its share of the peak if
/// known. Cases of one rank, cold if possible.
[[nodiscard]] std::vector<Entries> bests_by_suite(std::span<const Side> sides);
void draw_bests(std::span<const Entry> bests, std::vector<Figure>& figures);

/// A chart per precision and report: FLOP/s of ranked cases of one rank over FLOP per compulsory byte, a series per
/// suite. The roof is min(intensity * bandwidth, peak), published if known, else the run's best matrix product and best
/// copy or triad. Cases above the roof by more than their interval are listed with the reason. Precisions without both
/// ceilings are left out.
///
/// Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
/// architectures", CACM 52(4), 2009.
[[nodiscard]] std::vector<Entries> recipes_with_a_roof(std::span<const Side> sides);
void draw_roofline(std::span<const Entry> entries, std::vector<Figure>& figures);
void count_cases_above_the_roof(Html& html, const Material& material);

/// For cases at several rank counts: the rate as a multiple of that at the fewest ranks, the ideal line, and the
/// report's efficiency. Ideal is the ratio of units (processors, SMs). Ranks on a CPU share its processors, so there
/// efficiency is the speed-up. No virtual ranks or single collectives.
[[nodiscard]] std::vector<Entries> workloads_on_several_ranks(std::span<const Side> sides);
void draw_scaling(std::span<const Entry> workload, std::vector<Figure>& figures);

/// Bus bandwidth (nccl-tests' busbw) over message size, log-log: a chart per collective, a series per precision and
/// number of ranks, and the link's limit if known. Collectives at one or two sizes are bars of one chart.
[[nodiscard]] std::vector<Entries> collectives_by_curve(std::span<const Side> sides);
void draw_bus(std::span<const Entry> cases, std::vector<Figure>& figures);

/// Heat maps of the rate of each link, per report and message size of a pairwise exchange.
[[nodiscard]] std::vector<Figure> links_of(const Side& side);

/// A heat map per report, op kinds by precision: the largest error over its bound among all judged elements, where 1 is
/// the whole bound. Failing ones are included and marked. Ops without judged elements are left out.
[[nodiscard]] std::vector<Figure> error_budget_of(const Side& side);

/// Ranked programs of one rank with several kinds of op, by suite.
[[nodiscard]] std::vector<Entries> programs_by_suite(std::span<const Side> sides);
/// A bar per workload and precision, for its largest program: the time of each kind of op alone as a share of the step.
/// The unexplained rest has a sign: gaps between launches make it positive, overlap and warm caches negative. The table
/// has all programs, and the drawn ones by layer.
void draw_breakdown(std::span<const Entry> suite, std::vector<Figure>& figures);
void draw_memory(std::span<const Entry> suite, std::vector<Figure>& figures);

/// Work per joule of ranked cases with measured energy, a chart per unit of work.
[[nodiscard]] std::vector<Entries> cases_with_energy(std::span<const Side> sides);
void draw_energy(std::span<const Entry> cases, std::vector<Figure>& figures);

/// The cost of a million items (tokens, images) and of an exaFLOP (10^18) of whole training steps at the measured rate.
/// Unreliable cases are counted and left out. A case on several GPU ranks is charged per device; ranks on a CPU share
/// one. Nothing without a price.
void add_cost(std::vector<SectionPart>& parts, const Material& material);

/// The parts of an id, then the verdicts except pass and the flags that occur in these reports, a sentence each.
void add_legend(Html& html, std::span<const Side> sides);

}  // namespace gpubench::page
