// Reports as the figures see them: each with a name and its ceilings, and its cases by what they have in common.
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

/// A limit in FLOP/s or B/s.
struct KnownCeiling {
  double value = 0.0;
  std::string source;  ///< who publishes it; of a measured one the case
};

struct KnownCeilings {
  std::map<std::string, KnownCeiling> published;  ///< of the arithmetic, by recipe
  std::map<std::string, KnownCeiling> measured;   ///< the best matrix product, by recipe
  std::optional<KnownCeiling> published_memory;
  std::optional<KnownCeiling> measured_memory;  ///< the best copy or triad, cold
  std::optional<KnownCeiling> link;             ///< between devices, one direction

  /// The published one, else the measured one; null where neither is known.
  [[nodiscard]] const KnownCeiling* arithmetic(const std::string& recipe) const;
  [[nodiscard]] const KnownCeiling* memory() const;
};

[[nodiscard]] KnownCeilings known_ceilings(const Report& report);

/// What a case is compared with: the published peak of its own limit, where it is known and of the headline's unit.
[[nodiscard]] std::optional<double> published_limit(const CaseRecord& record);

/// Whether it computes more than one FLOP a byte; what does not is limited by memory, or by how fast work starts.
[[nodiscard]] bool is_arithmetic(const CaseRecord& record);

/// How close a case came to a ceiling: 0.75 of the "peak", the "link", else the "best gemm" or "best copy or triad".
struct CeilingShare {
  double fraction = 0.0;
  std::string_view of;
};
/// Of the limit that binds the case: published where that is known, else measured; empty where neither is, and where
/// arithmetic is no limit at all.
[[nodiscard]] std::optional<CeilingShare> share_of_ceiling(const CaseRecord& record, const KnownCeilings& ceilings);

/// One report among those of the page.
struct Side {
  const Report* report = nullptr;
  std::string letter;  ///< "A", "B"; empty where there is only one
  std::string device;  ///< its name; untrusted
  std::string label;   ///< what its owner calls it ("driver 580"); mostly empty; untrusted
  std::string name;    ///< "A: NVIDIA H200, 2026-11-21 02:34 UTC"; "A: driver 580, NVIDIA H200, ..."
  KnownCeilings ceilings;
  std::shared_ptr<const Report> part{};  ///< `report`, where that is one contender's part of a report

  /// "A", or "A (driver 580)".
  [[nodiscard]] std::string called() const { return label.empty() ? letter : letter + " (" + label + ")"; }
};

/// Of a report with implementations under test, each contender is a side of its own, with its name as the label. The
/// reports must outlive what is returned.
[[nodiscard]] std::vector<Side> sides_of(std::span<const Report> reports,
                                         const std::map<std::string, std::string>& labels = {});

/// "2026-11-21 02:34 UTC".
[[nodiscard]] std::string day_and_minute(std::time_t time);

/// Whether a case may be in a chart of rates or times: it passed, was timed, and ran on real devices.
[[nodiscard]] bool ranked(const CaseRecord& record);

/// Whether it may also be a best, a ceiling, or a part of a mean or an efficiency: ranked, and its timing not
/// unreliable (timing_unreliable() of harness/core/record.h). What is ranked but not reliable is drawn hollow, and its
/// rate has a ~ before it.
[[nodiscard]] bool reliable(const CaseRecord& record);

/// Whether the case is a whole training step: its workload's name ends in "_step" (suites/README.md).
[[nodiscard]] bool is_whole_step(const CaseRecord& record);

/// A case of one side.
struct Entry {
  const Side* side = nullptr;
  const CaseRecord* record = nullptr;
};
using Entries = std::vector<Entry>;

/// The ranked cases that `wanted` accepts, in the order of the reports and of their plans.
[[nodiscard]] Entries entries_of(std::span<const Side> sides, const std::function<bool(const CaseRecord&)>& wanted);

/// The entries divided by key, in the order in which the keys first appear; no part is empty.
[[nodiscard]] std::vector<Entries> split(std::span<const Entry> entries,
                                         const std::function<std::string(const Entry&)>& key);
/// The same by workload and the unit of their rates.
[[nodiscard]] std::vector<Entries> by_workload(std::span<const Entry> entries);
/// All entries of several parts, one part after the other.
[[nodiscard]] Entries concatenated(std::span<const Entries> parts);

/// "gemm/matmul".
[[nodiscard]] std::string workload_name(const Entry& entry);

/// "bf16", "A bf16": the recipe, and whose where there are several reports.
[[nodiscard]] std::string recipe_name(const Entry& entry);

/// What distinguishes the series of one workload: recipe_name() and the modes, "A bf16 warm".
[[nodiscard]] std::string series_name(const Entry& entry);

/// The dimensions of cases in as few words as distinguish them.
class DimsText {
 public:
  explicit DimsText(std::span<const Entry> entries);

  /// "m=512 n=512", without those dimensions that are the same in all; every dimension where nothing differs.
  [[nodiscard]] std::string of(const CaseRecord& record) const;
  /// The dimensions that all have in common: "dilation=1 groups=1"; empty where there are none, or where nothing
  /// differs.
  [[nodiscard]] std::string common() const;
  /// Names of those that differ.
  [[nodiscard]] const std::vector<std::string>& varying() const { return varying_; }

 private:
  std::vector<std::string> varying_;
  std::string common_;
};

/// The label of the case, where it has one, else its dimensions: those of `dims`, or all.
[[nodiscard]] std::string short_name(const CaseRecord& record, const DimsText& dims);
[[nodiscard]] std::string short_name(const CaseRecord& record);

/// Letters, digits and dashes: "gemm/linear_forward" -> "gemm-linear-forward". Never empty.
[[nodiscard]] std::string slug(std::string_view text);

/// "12 cases", "1 case"; `several` where that is not `one` with an s.
[[nodiscard]] std::string counted(std::size_t count, std::string_view one, std::string_view several = "");

/// "not_proven" -> "not proven".
[[nodiscard]] std::string spaced(std::string_view word);

/// How many for each reason: "2 unreliable, 1 without a rate".
[[nodiscard]] std::string reasons_text(const std::map<std::string, int>& reasons);

/// "75.3%"; "-" for nothing.
[[nodiscard]] std::string percent_text(const std::optional<double>& fraction);

}  // namespace gpubench::page
