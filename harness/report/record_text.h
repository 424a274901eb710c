// A record in words: unreliable timings, flags, verdicts, devices. The console, pull requests and pages say the same.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/record.h"

namespace gpubench {

/// Timings of cases that passed (or were not checked), how many of them are unreliable, and how busy the processors
/// were meanwhile: the median over those of the share of a round in which some task waited for one.
struct TimingCount {
  int timings = 0;
  int unreliable = 0;
  std::optional<double> cpu_pressure{};
};
[[nodiscard]] TimingCount count_timings(std::span<const CaseRecord> records);

/// "93 of 197 timings unreliable: the processors were busy (some task waited for one 82% of the time); stop other work
/// and run again"; empty where all are reliable.
[[nodiscard]] std::string unreliable_text(std::span<const CaseRecord> records);

/// "PASS", or with unreliable timings "PASS (correct); 93 of 197 timings unreliable: ...". `word` is
/// verdict_word_of_run()'s.
[[nodiscard]] std::string verdict_with_reliability(std::string_view word, std::span<const CaseRecord> records);

/// "21.8 GFLOP/s", of an unreliable timing "~21.8 GFLOP/s".
[[nodiscard]] std::string rate_text_of(const CaseRecord& record);

/// "f32, one product at a time; running sums of 24 bits, to nearest; inputs exact; stored to nearest even; in order of
/// k": what a probe read of a plan, without what it could not read.
[[nodiscard]] std::string arithmetic_text(const PlanArithmetic& arithmetic);

/// "12.5%", or "unknown".
[[nodiscard]] std::string share_or_unknown(const std::optional<double>& share);

/// What a flag ("noisy", "severe", "rank 1 straggles") or a verdict ("downgraded") means; empty for an unknown one.
[[nodiscard]] std::string_view meaning_of_flag(std::string_view flag);
[[nodiscard]] std::string_view meaning_of(Verdict verdict);

/// Each flag, and each verdict that is no plain word, that occurs in these records, with its meaning; each once.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> words_to_explain(std::span<const CaseRecord> records);

/// How to read a case's id.
inline constexpr std::string_view id_grammar =
    "a case's id: suite/workload/sizes/precision[/mode...]/xRANKS; the same id is the same work on every machine";

/// "2 threads" of a CPU, "132 SMs" of a GPU, "1 unit" of anything else.
[[nodiscard]] std::string units_text(const DeviceInfo& device);

/// "oneDNN 2.6.3", "OpenMP 4.5" for the date 201511 that compilers give; other names as they are. Not escaped.
[[nodiscard]] std::string library_text(std::string_view library, std::string_view version);

/// All of them: "oneDNN 2.6.3, OpenMP 4.5"; "" where there are none.
[[nodiscard]] std::string libraries_text(const DeviceInfo& device);

}  // namespace gpubench
