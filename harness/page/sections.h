// Every part of a report's page: its summary, tables and figures. report_page.cpp puts them together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/compare/comparison.h"
#include "harness/page/figure.h"
#include "harness/page/report_page.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// One side against the first.
struct SideComparison {
  const Side* a = nullptr;
  const Side* b = nullptr;
  Comparison comparison;
};

/// All sides against the first one, or why that cannot be done.
struct Comparisons {
  std::vector<SideComparison> pairs;
  std::string refusal;
};

/// Empty for fewer than two sides. The sides must outlive it.
[[nodiscard]] Comparisons comparisons_of(std::span<const Side> sides);

/// A row per suite: the geometric mean of B's speed as a multiple of A's, its interval, how many cases are faster,
/// slower, the same or inconclusive, and which have no ratio and why.
[[nodiscard]] DataTable ratio_table(const SideComparison& pair);

/// The largest gains and losses beyond their uncertainty, gains first; at most `most` of each.
[[nodiscard]] DataTable changes_table(const SideComparison& pair, std::size_t most = 5);

/// A part for each pair: both tables, and one chart per suite of how many times faster the other side is, case by case
/// (the most different ones), with 95% intervals and harness/compare's words; the suite's geometric mean is a diamond.
/// Where reports cannot be compared, a notice says why. Nothing for fewer than two sides.
void add_comparison(std::vector<SectionPart>& parts, const Material& material);

/// Per report: the verdict in a word with its counts, how many timings are unreliable and why, and warnings if its
/// numbers are not results.
void add_verdict(Html& html, std::span<const Side> sides);

/// Per report: how much was judged, and how long the run took.
void add_coverage(Html& html, const Material& material);

/// The first five cases that went wrong by name, each with the start of its reason, and a link to all.
void add_first_failures(Html& html, std::span<const Side> sides);

/// What is known about each case that went wrong, in the order of the reports and of their plans, and the line that
/// reruns it; nothing where there is none. Of very many, the first ones.
void add_failures(Html& html, const Material& material);

/// Per report: what the probes read of the plans of matrix products, a row for plans of which they read the same, with
/// the rate of the fastest case that is this op alone. Nothing without probes.
void add_arithmetic(Html& html, const Material& material);

/// What the words mean, why cases did not run (collapsed), and every case in the order of the plan.
void add_all_cases(Html& html, const Material& material);

/// A row per suite and precision, whole training steps first: the geometric mean of the rates with an interval that
/// would hold if all of its cases erred together (the mean of their half-widths on the log scale, an upper bound), the
/// best, its share of a ceiling, and what is left out and why. Rates of items (tokens) are of one workload each: a
/// token of a block is not one of a model. A precision in which nothing could run has no row.
[[nodiscard]] DataTable speed_table(std::span<const Side> sides);

/// The table and what it leaves out; nothing where no case has a rate.
void add_speed(Html& html, const Material& material);

/// A row per suite: its best rate with the precision, a column per report, of the cases that count in speed_table(). Of
/// a single report also the case.
[[nodiscard]] DataTable bests_table(std::span<const Side> sides);

/// The table with its heading, or that there is no such case.
void add_bests(Html& html, std::span<const Side> sides);

/// Per report in a few lines: devices with memory, driver and libraries; host; date, tier and version of gpubench. The
/// heading of the page, or of the report's verdict, names its device.
void add_machine(Html& html, std::span<const Side> sides);

/// Tables of facts, a column per report: what was set for this run and is not a default first, then device, what its
/// sensors told while rounds were measured (clocks, power, temperature, reasons for lower clocks, and on a CPU how long
/// tasks waited for a processor), libraries, host and build. With several reports, rows that differ are marked.
void add_environment(Html& html, const Material& material);

// The figures, each as the cases of its charts and how one chart of them is drawn.

/// One chart per workload that was measured at three sizes or more: rate against the work of a run (FLOP, or bytes
/// where the rate is in bytes), log-log, a series per precision, with the published peak as a line. Cases of one rank.
[[nodiscard]] std::vector<Entries> workloads_with_a_curve(std::span<const Side> sides);
void draw_size_curve(std::span<const Entry> workload, std::vector<Figure>& figures);
/// One chart per shape that was measured at two batch sizes or more, everything else being equal.
[[nodiscard]] std::vector<Entries> shapes_in_batches(std::span<const Side> sides);
void draw_batch_curve(std::span<const Entry> shape, std::vector<Figure>& figures);

/// One chart per suite and unit: the best reliable rate of each workload in each precision, and how much of the peak
/// that is, where it is known. Cases of one rank, cold where they can be.
[[nodiscard]] std::vector<Entries> bests_by_suite(std::span<const Side> sides);
void draw_bests(std::span<const Entry> bests, std::vector<Figure>& figures);

/// One chart per precision and report: FLOP/s of every ranked case of one rank against its FLOP per compulsory byte, a
/// series per suite; the roof is min(intensity * bandwidth, peak), published where that is known, else the best matrix
/// product and the best copy or triad of the run itself. Cases above the roof by more than their interval are listed
/// with the reason. A precision without both ceilings is left out.
///
/// Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
/// architectures", CACM 52(4), 2009.
[[nodiscard]] std::vector<Entries> recipes_with_a_roof(std::span<const Side> sides);
void draw_roofline(std::span<const Entry> entries, std::vector<Figure>& figures);
void count_cases_above_the_roof(Html& html, const Material& material);

/// Where a report has the same case at several rank counts: its rate as a multiple of that at the fewest ranks, with
/// the ideal line, and the efficiency from the report. Ideal is the ratio of units (processors, SMs): on a CPU ranks
/// share the processors, so that more ranks have no more of them, and efficiency is the speed-up itself. Never virtual
/// ranks or single collectives.
[[nodiscard]] std::vector<Entries> workloads_on_several_ranks(std::span<const Side> sides);
void draw_scaling(std::span<const Entry> workload, std::vector<Figure>& figures);

/// Bus bandwidth (nccl-tests' busbw) against message size, log-log: one chart per collective, a series per precision
/// and number of ranks, with the link's limit where it is known. Collectives that were measured at one or two sizes are
/// bars of one chart.
[[nodiscard]] std::vector<Entries> collectives_by_curve(std::span<const Side> sides);
void draw_bus(std::span<const Entry> cases, std::vector<Figure>& figures);

/// Heat maps per report, one for each size of message at which ranks exchanged in pairs: what each link reaches.
[[nodiscard]] std::vector<Figure> links_of(const Side& side);

/// A heat map per report: op kinds by precision, the largest error over its bound among all judged elements of all
/// checks, failing ones too, which are marked: 1 is the whole of the bound. Ops of which nothing was judged are left
/// out.
[[nodiscard]] std::vector<Figure> error_budget_of(const Side& side);

/// The ranked programs of one rank that have several kinds of op, by suite.
[[nodiscard]] std::vector<Entries> programs_by_suite(std::span<const Side> sides);
/// A bar per workload and precision, for its largest program, divided by kind of op: what each takes alone as a share
/// of the step. What the ops do not explain is shown with its sign: gaps between launches make it positive, overlap and
/// warm caches negative. The table has all programs, and the drawn ones by layer too.
void draw_breakdown(std::span<const Entry> suite, std::vector<Figure>& figures);
/// The memory of the same programs by kind.
void draw_memory(std::span<const Entry> suite, std::vector<Figure>& figures);

/// Work per joule of every ranked case whose energy was measured, a chart per unit of work.
[[nodiscard]] std::vector<Entries> cases_with_energy(std::span<const Side> sides);
void draw_energy(std::span<const Entry> cases, std::vector<Figure>& figures);

/// With a price: what a million items (tokens, images) and an exaFLOP (10^18) of whole training steps cost at the
/// measured rate; unreliable ones are counted and left out. A case of several ranks on GPUs is charged a device for
/// each; ranks on a CPU share one. Nothing without a price.
void add_cost(std::vector<SectionPart>& parts, const Material& material);

/// The parts of an id, then the verdicts other than pass and the flags that occur in these reports, a sentence each.
void add_words(Html& html, std::span<const Side> sides);

}  // namespace gpubench::page
