// Texts about records that console, pull requests and pages share: unreliable timings, flags, verdicts, devices.
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

/// Timings of cases that passed or were not checked, and the unreliable ones among them, with the median over those of
/// the share of a round in which some task waited for a processor.
struct TimingCount {
  int timings = 0;
  int unreliable = 0;
  std::optional<double> cpu_pressure{};
};
[[nodiscard]] TimingCount count_timings(std::span<const CaseRecord> records);

/// "93 of 197 timings unreliable: the processors were busy (some task waited for one 82% of the time); stop other work
/// and run again"; empty if all are reliable.
[[nodiscard]] std::string unreliable_text(std::span<const CaseRecord> records);

/// "PASS", or with unreliable timings "PASS (correct); 93 of 197 timings unreliable: ...". `word`:
/// verdict_word_of_run().
[[nodiscard]] std::string verdict_with_reliability(std::string_view word, std::span<const CaseRecord> records);

[[nodiscard]] std::string rate_text_of(const CaseRecord& record);

/// The known readings of a probe: "f32, one product at a time; running sums of 24 bits, to nearest; inputs exact;
/// stored to nearest even; in order of k".
[[nodiscard]] std::string arithmetic_text(const PlanArithmetic& arithmetic);

[[nodiscard]] std::string share_or_unknown(const std::optional<double>& share);

/// The meaning of a flag ("noisy", "severe", "rank 1 straggles") or a verdict ("downgraded"); empty if unknown.
[[nodiscard]] std::string_view meaning_of_flag(std::string_view flag);
[[nodiscard]] std::string_view meaning_of(Verdict verdict);

/// Flags and verdicts of these records that need an explanation, each once with its meaning.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> legend_entries(std::span<const CaseRecord> records);

inline constexpr std::string_view id_grammar =
    "a case's id: suite/workload/sizes/precision[/mode...]/xRANKS; the same id is the same work on every machine";

/// "2 threads" of a CPU, "132 SMs" of a GPU, "1 unit" of others.
[[nodiscard]] std::string units_text(const DeviceInfo& device);

/// "oneDNN 2.6.3"; "OpenMP 4.5" for the compiler's date 201511; other names unchanged. Not escaped.
[[nodiscard]] std::string library_text(std::string_view library, std::string_view version);

/// "oneDNN 2.6.3, OpenMP 4.5"; "" if there are none.
[[nodiscard]] std::string libraries_text(const DeviceInfo& device);

}  // namespace gpubench
