#include "harness/report/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/record.h"
#include "harness/core/step_parts.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/statistics.h"
#include "harness/report/record_text.h"

namespace gpubench {
namespace {

std::string percent(double fraction) { return fmt::format("{:.1f}%", 100.0 * fraction); }

std::string parts_lines(const char* by, std::span<const StepPart> parts, const CaseRecord& record,
                        const ConsoleStyle& style) {
  TextTable table({{"  alone", Align::right},
                   {"share", Align::right},
                   {"ops", Align::right},
                   {"work", Align::right},
                   {"bytes", Align::right},
                   {"rate", Align::right},
                   {std::string(utilization_name(record.c)), Align::right},
                   {by}});
  for (const StepPart& part : parts) {
    const std::optional<double> mfu = utilization(record.derived, part.flop_per_s());
    table.add({format_time_ns(part.median_ns),
               share_is_reliable(part.share, record.summary) ? percent(part.share) : "unknown",
               fmt::format("{}", part.ops), format_quantity(part.flop, "FLOP"), format_quantity(part.bytes, "B"),
               format_quantity(part.flop_per_s(), "FLOP/s"), mfu ? percent(*mfu) : "-", part.name});
  }
  return table.text(style, indent_below);
}

// "weights 12.4 MB, optimizer state 99.3 MB, ..., scratch 1.05 MB"
std::string memory_text(const CaseRecord& record) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& kind, std::int64_t bytes) {
    parts.push_back(fmt::format("{} {}", kind, format_quantity(static_cast<double>(bytes), "B")));
  };
  for (const MemoryPart& part : *record.memory) add(part.kind, part.bytes);
  if (record.workspace_bytes) add("scratch", *record.workspace_bytes);
  return joined(parts);
}

// For a composite step: kinds of op and layers, the time of each op alone, and the rest.
std::string breakdown_lines(const CaseRecord& record, const ConsoleStyle& style) {
  const Derived& derived = record.derived;
  if (derived.breakdown.empty()) return "";
  TextTable table({{"  alone", Align::right}, {"share", Align::right}, {"op"}, {"by"}});
  for (const OpShare& op : derived.breakdown) {
    table.add({format_time_ns(op.median_ns),
               share_is_reliable(op.share, record.summary) ? percent(op.share) : "unknown",
               fmt::format("{} ({})", op.label, op.kind), op.implementation});
  }
  const std::optional<double> remainder = reliable_remainder(record);
  table.add({"", remainder ? fmt::format("{:+.1f}%", 100.0 * *remainder) : "unknown",
             "remainder (gaps +, overlap and warm caches -)"});
  std::string lines = parts_lines("kind of op", parts_by_kind(derived.breakdown), record, style);
  const std::vector<StepPart> layers = parts_by_layer(derived.breakdown);
  if (layers.size() < derived.breakdown.size()) lines += parts_lines("layer", layers, record, style);
  return paint(lines + table.text(style, indent_below), Tone::faint, style);
}

// "78.3% of bf16's peak (H200 SXM, sourced: ...), 81.0% of it at the clock of the rounds, 99.1% of the best here (...)"
std::string peak_text(const PeakShare& peak) {
  std::vector<std::string> parts;
  if (peak.of_peak)
    parts.push_back(fmt::format("{} of {}'s peak ({})", percent(*peak.of_peak), peak.limit, peak.peak_source));
  if (peak.of_peak_at_clock)
    parts.push_back(fmt::format("{} of it at the clock of the rounds", percent(*peak.of_peak_at_clock)));
  if (peak.of_best) parts.push_back(fmt::format("{} of the best here ({})", percent(*peak.of_best), peak.best_case));
  return joined(parts);
}

std::string energy_text(const Derived& derived) {
  std::string text = format_quantity(*derived.energy_j, "J") + " per run";
  if (derived.energy_per_work_j && *derived.energy_per_work_j > 0.0) {
    const std::string work = derived.headline_unit.substr(0, derived.headline_unit.find('/'));
    text += ", " + format_quantity(1.0 / *derived.energy_per_work_j, work + "/J");
  }
  return text;
}

// "efficiency 0.93 of one rank, 4.1% exposed communication, busbw 9.81 GB/s, algbw 9.81 GB/s, slowest rank 3.1% late"
std::string ranks_text(const CaseRecord& record) {
  const Derived& derived = record.derived;
  std::vector<std::string> parts;
  if (const std::optional<double> efficiency = reliable_efficiency(record))
    parts.push_back(fmt::format("efficiency {:.2f} against one rank", *efficiency));
  if (const std::optional<double> exposed = reliable_exposed(record))
    parts.push_back(fmt::format("{} of the step is exposed communication", percent(*exposed)));
  else if (derived.ranks && derived.ranks->exposed_communication)
    parts.emplace_back("exposed communication unknown");
  if (derived.collective) {
    parts.push_back(fmt::format("busbw {}", format_quantity(derived.collective->bus_bytes_per_s, "B/s")));
    parts.push_back(fmt::format("algbw {}", format_quantity(derived.collective->algorithm_bytes_per_s, "B/s")));
  }
  if (derived.ranks) parts.push_back(fmt::format("the slowest rank is {} late", percent(derived.ranks->straggler)));
  return joined(parts);
}

// "p50 1.20 ms, p90 1.31 ms, p99 1.75 ms (of 200 samples)"; no 99th percentile below 100 samples.
std::string percentiles_text(const CaseRecord& record) {
  const std::vector<double> samples = samples_per_run_ns(record);
  const auto at = [&samples](double p) { return format_time_ns(quantile(samples, p)); };
  return fmt::format("p50 {}, p90 {}, p99 {} (of {} samples)", at(0.50), at(0.90),
                     samples.size() >= min_for_p99 ? at(0.99) : "-", samples.size());
}

}  // namespace

std::vector<double> samples_per_run_ns(const CaseRecord& record) {
  std::vector<double> samples;
  for (const RoundRecord& round : record.rounds) {
    if (!round.valid || record.batch < 1) continue;
    for (const double ns : round.times.device_ns) samples.push_back(ns / static_cast<double>(record.batch));
  }
  return samples;
}

std::string error_text(const Parity& parity) {
  if (parity.ops.empty()) return "-";
  const double error = parity.error_over_bound;
  return std::isfinite(error) && error >= 999.5 ? fmt::format("{:.0e}", error) : fmt::format("{:.2f}", error);
}

std::string verdict_word(Verdict verdict) {
  std::string word(name(verdict));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
  return word;
}

bool went_wrong(Verdict verdict) {
  return verdict == Verdict::fail || verdict == Verdict::downgraded || verdict == Verdict::not_proven ||
         verdict == Verdict::error;
}

std::string line_below(std::string_view text, const ConsoleStyle& style) {
  return std::string(indent_below, ' ') + fitted(text, style.width, indent_below) + "\n";
}

std::string details_text(const CaseRecord& record, const ConsoleStyle& style) {
  std::string lines;
  const auto add = [&](const std::string& text) { lines += line_below(visible(text), style); };
  if (!samples_per_run_ns(record).empty()) add(percentiles_text(record));
  if (!record.implementation.empty()) {
    const std::string how = record.choice ? fmt::format(" ({})", name(*record.choice)) : "";
    add(fmt::format("by {}{}", record.implementation, how));
  }
  for (const OpParity& op : record.parity.ops) {
    if (op.phase != "check" || !op.rejected) continue;
    for (const std::string& candidate : *op.rejected) add(fmt::format("not chosen for {}: {}", op.label, candidate));
  }
  if (record.rewrites) add("fused " + joined(*record.rewrites));
  if (!record.parity.coverage.empty()) add("checked " + record.parity.coverage);
  for (const PlanArithmetic& plan : record.parity.arithmetic.value_or(std::vector<PlanArithmetic>{})) {
    const std::string more = plan.ops > 1 ? fmt::format(" and {} more", plan.ops - 1) : "";
    add(fmt::format("arithmetic of {}{} ({}): {}", plan.label, more, plan.kind, arithmetic_text(plan)));
  }
  if (record.derived.peak)
    add((record.derived.breakdown.empty() ? "reached " : fmt::format("{}: ", utilization_name(record.c))) +
        peak_text(*record.derived.peak));
  if (record.memory) add("memory: " + memory_text(record));
  if (record.derived.ranks) add("ranks: " + ranks_text(record));
  if (record.derived.energy_j) add("took " + energy_text(record.derived));
  return paint(lines, Tone::faint, style) + breakdown_lines(record, style);
}

}  // namespace gpubench
