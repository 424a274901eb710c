// Reports for the figures: names, ceilings, and cases in groups.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/report_json.h"

namespace gpubench::page {

/// In FLOP/s or B/s.
struct KnownCeiling {
  double value = 0.0;
  std::string source;  ///< publisher, or the case that measured it
};

struct KnownCeilings {
  std::map<std::string, KnownCeiling> published;  ///< of arithmetic, by recipe
  std::map<std::string, KnownCeiling> measured;   ///< best matrix product, by recipe
  std::optional<KnownCeiling> published_memory;
  std::optional<KnownCeiling> measured_memory;  ///< best copy or triad, cold
  std::optional<KnownCeiling> link;             ///< between devices, one direction

  /// Published, else measured; null if unknown.
  [[nodiscard]] const KnownCeiling* arithmetic(const std::string& recipe) const;
  [[nodiscard]] const KnownCeiling* memory() const;
};

[[nodiscard]] KnownCeilings known_ceilings(const Report& report);

/// The published peak of the case's limit, if known and in the headline's unit.
[[nodiscard]] std::optional<double> published_limit(const CaseRecord& record);

/// More than one FLOP per byte; other cases are limited by memory or launch overhead.
[[nodiscard]] bool is_arithmetic(const CaseRecord& record);

/// The share of a ceiling: 0.75 of the "peak", the "link", else the "best gemm" or "best copy or triad".
struct CeilingShare {
  double fraction = 0.0;
  std::string_view of;
};
/// Of the binding limit: published if known, else measured. Not set without either, and if arithmetic is not a limit.
[[nodiscard]] std::optional<CeilingShare> share_of_ceiling(const CaseRecord& record, const KnownCeilings& ceilings);

struct Side {
  const Report* report = nullptr;
  std::string letter;  ///< "A", "B"; empty for a single report
  std::string device;  ///< untrusted
  std::string label;   ///< given by the user ("driver 580"); usually empty; untrusted
  std::string name;    ///< "A: NVIDIA H200, 2026-11-21 02:34 UTC"; "A: driver 580, NVIDIA H200, ..."
  KnownCeilings ceilings;
  std::shared_ptr<const Report> part{};  ///< owns `report` if that is one contender's part of a report

  [[nodiscard]] std::string called() const { return label.empty() ? letter : letter + " (" + label + ")"; }
};

/// For reports with implementations under test, a side per contender, labelled with its name. The reports must outlive
/// the result.
[[nodiscard]] std::vector<Side> sides_of(std::span<const Report> reports,
                                         const std::map<std::string, std::string>& labels = {});

[[nodiscard]] std::string day_and_minute(std::time_t time);

/// May appear in charts of rates or times: passed, timed, on real devices.
[[nodiscard]] bool ranked(const CaseRecord& record);

/// May also be a best, a ceiling, or part of a mean or an efficiency: ranked, and timing_unreliable()
/// (harness/core/record.h) is false. Ranked but unreliable cases are drawn hollow, their rates marked with ~.
[[nodiscard]] bool reliable(const CaseRecord& record);

/// A whole training step: the workload's name ends in "_step" (suites/README.md).
[[nodiscard]] bool is_whole_step(const CaseRecord& record);

struct Entry {
  const Side* side = nullptr;
  const CaseRecord* record = nullptr;
};
using Entries = std::vector<Entry>;

/// The ranked cases that `wanted` accepts, in order of reports and plans.
[[nodiscard]] Entries entries_of(std::span<const Side> sides, const std::function<bool(const CaseRecord&)>& wanted);

/// Divided by key, in order of appearance; no part is empty.
[[nodiscard]] std::vector<Entries> split(std::span<const Entry> entries,
                                         const std::function<std::string(const Entry&)>& key);
/// By workload and unit of the rate.
[[nodiscard]] std::vector<Entries> by_workload(std::span<const Entry> entries);
[[nodiscard]] Entries concatenated(std::span<const Entries> parts);

[[nodiscard]] std::string workload_name(const Entry& entry);

/// "bf16"; with several reports "A bf16".
[[nodiscard]] std::string recipe_name(const Entry& entry);

/// recipe_name() and modes, "A bf16 warm": distinguishes the series of a workload.
[[nodiscard]] std::string series_name(const Entry& entry);

/// The shortest text of dimensions that distinguishes the cases.
class DimsText {
 public:
  explicit DimsText(std::span<const Entry> entries);

  /// "m=512 n=512", without dimensions that are equal in all cases; all dimensions if none differ.
  [[nodiscard]] std::string of(const CaseRecord& record) const;
  /// Dimensions common to all cases: "dilation=1 groups=1"; empty if there are none, or if none differ.
  [[nodiscard]] std::string common() const;
  [[nodiscard]] const std::vector<std::string>& varying() const { return varying_; }

 private:
  std::vector<std::string> varying_;
  std::string common_;
};

/// The label of the case, else its dimensions: those of `dims`, or all.
[[nodiscard]] std::string short_name(const CaseRecord& record, const DimsText& dims);
[[nodiscard]] std::string short_name(const CaseRecord& record);

/// Letters, digits and dashes: "gemm/linear_forward" -> "gemm-linear-forward". Never empty.
[[nodiscard]] std::string slug(std::string_view text);

/// "12 cases", "1 case"; `several`: irregular plurals.
[[nodiscard]] std::string counted(std::size_t count, std::string_view one, std::string_view several = "");

[[nodiscard]] std::string spaced(std::string_view word);

/// "2 unreliable, 1 without a rate".
[[nodiscard]] std::string reasons_text(const std::map<std::string, int>& reasons);

/// "75.3%"; "-" if not set.
[[nodiscard]] std::string percent_text(const std::optional<double>& fraction);

}  // namespace gpubench::page
