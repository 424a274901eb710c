// Records: the results of each case and their reliability. Printers, reports and comparisons read nothing else.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/case.h"
#include "harness/core/enum_names.h"
#include "harness/core/telemetry.h"

namespace gpubench {

enum class Verdict {
  pass,
  fail,         ///< an op's output is outside its bound
  downgraded,   ///< a lower precision than declared was measured
  not_proven,   ///< nothing was compared, or the check accepted a corrupted output
  unverified,   ///< --check off
  unsupported,  ///< not in the backend; the reason is the library's
  skipped,      ///< does not fit memory, or not selected; the reason has the numbers
  error         ///< crash, hang, out of memory, a library error
};
template <>
inline constexpr auto enum_names<Verdict> = std::to_array<std::string_view>({"pass", "fail", "downgraded", "not_proven",
                                                                             "unverified", "unsupported", "skipped",
                                                                             "error"});
[[nodiscard]] constexpr bool is_rejected(Verdict verdict) {
  return verdict == Verdict::fail || verdict == Verdict::downgraded;
}
/// The worse of two, for a program's verdict: error, fail, downgraded, not_proven, unverified, unsupported, skipped,
/// pass.
[[nodiscard]] Verdict worse(Verdict a, Verdict b);

struct Worst {
  std::string tensor;
  std::vector<std::int64_t> index;  ///< logical
  double got = 0.0;
  double want = 0.0;
  double bound = 0.0;  ///< of |got - want|, before rounding to the storage type
};

/// Of an output's judged elements outside their bound (harness/parity/compare_elements.h).
struct WrongPlaces {
  std::string tensor;
  std::string words;         ///< "all 256 are in [0-15, 32-47]"
  std::int64_t rows = 1;     ///< of the tensor: all axes but the last
  std::int64_t columns = 1;  ///< the last axis
  std::int64_t column_bands = 1;
  std::vector<std::int64_t> counts;  ///< of wrong elements, `column_bands` for each band of rows
};

struct OpParity {
  std::string label;  ///< the op's label in the program
  std::string kind;
  std::string phase;  ///< "check" (run alone) or "recheck" (inside the timed launch)
  std::string implementation;
  std::optional<Choice> choice{};  ///< how the implementation was chosen, if there was a choice
  /// Candidates that were rejected for wrong results, and the size of their errors.
  std::optional<std::vector<std::string>> rejected{};
  Verdict verdict = Verdict::not_proven;
  std::string reason;  ///< "3 of 4096 elements outside their bound, first at c[0, 17]"; "unwritten"; empty on pass
  double error_over_bound = 0.0;  ///< largest used part of an element's bound, beyond rounding; NaN as infinity
  std::int64_t judged = 0;
  std::int64_t elements = 0;
  /// Elements of outputs that were compared whole, by sums (harness/parity/projection.h), and the smallest fault of a
  /// single element that these show, in units of its output's root mean square.
  std::optional<std::int64_t> projected{};
  std::optional<double> projected_fault{};
  std::int64_t bad = 0;  ///< judged elements outside their bound
  std::optional<Worst> worst;
  std::optional<WrongPlaces> places{};  ///< of the output with the worst element
  int mutations = 0;                    ///< live mutations tried on the host copy
  int mutations_rejected = 0;
};

/// Totals of passed checks of one kind of op without an OpParity in a brief report (harness/report/report_json.h).
struct PassedOps {
  std::string kind;
  int ops = 0;
  std::int64_t judged = 0;
  std::int64_t elements = 0;
  int mutations = 0;              ///< all rejected
  double error_over_bound = 0.0;  ///< the largest
  std::string phase;              ///< of the largest
};

/// One tensor after a whole program, compared with fp64 (harness/parity/end_to_end.h); 2-norms.
struct EndToEndTensor {
  std::string tensor;
  std::string role;      ///< "gradient", "parameter", "scalar", ...
  double norm = 0.0;     ///< of the fp64 result
  double error = 0.0;    ///< of the difference
  double allowed = 0.0;  ///< from the spread of correct runs
};

/// The arithmetic of a plan, read on special data (harness/parity/precision_probe.h). Missing readings are empty.
struct PlanArithmetic {
  std::string label;  ///< of the first op with this plan
  std::string kind;
  std::string implementation;
  int ops = 1;                    ///< of the case with the same plan
  std::string unit;               ///< "f32, one product at a time", "Hopper or Blackwell", "unknown"; may be empty
  std::string inputs;             ///< "exact", "tf32, cut"; "a: exact, b: two bf16"
  std::string products;           ///< "fused", "rounded before they are added"
  std::optional<int> bits{};      ///< significant bits of a running sum
  std::string rounding;           ///< of a running sum: "nearest", "cut"
  std::optional<int> at_once{};   ///< products added at once
  std::optional<int> fraction{};  ///< bits kept below the leading one of the largest product
  std::optional<std::int64_t> emptied{};  ///< products after which a narrow sum is added to an f32 one
  std::string partial;                    ///< the type of partial sums over distant k, if narrower: "bf16"
  std::string store;                      ///< rounding to the output's type: "nearest even", "toward zero"
  std::string denormals;                  ///< "kept"; "flushed: inputs, output"
  std::string specials;                   ///< "as IEEE 754"; "NaN x 0 is not NaN", "overflow saturates"
  std::string order;                      ///< "in order of k", "16 interleaved lanes, each in order, added in pairs"
  std::string note;                       ///< why there is no reading
  Verdict verdict = Verdict::pass;        ///< or downgraded
  std::string reason;                     ///< readings below the declared arithmetic; empty on pass
};

struct Parity {
  std::vector<OpParity> ops;
  std::optional<std::vector<PassedOps>> passed{};  ///< of a brief report: the ops missing from `ops`
  /// Of these ops, by label, unless `ops` or Derived::breakdown has the same.
  std::optional<std::vector<std::pair<std::string, std::string>>> implementations{};
  /// Of the timed matrix products and quantizations to blocks, one entry per plan.
  std::optional<std::vector<PlanArithmetic>> arithmetic{};
  /// Every final tensor, for small programs of several ops in the full check.
  std::optional<std::vector<EndToEndTensor>> end_to_end{};
  double error_over_bound = 0.0;  ///< the largest of the ops
  std::string worst_op;           ///< the op with error_over_bound
  std::string coverage;           ///< "all 12 ops, 100% of elements", "sampled 1.2%; recheck in 2 segments"
  std::uint64_t seed = 0;
};

struct RoundRecord {
  RoundTimes times;
  bool valid = true;
  std::string note;                           ///< why invalid, or anomalies
  std::optional<RoundTelemetry> telemetry{};  ///< if the device has sensors
};

struct Summary {
  int rounds = 0;
  std::int64_t samples = 0;
  double median_ns = 0.0;  ///< per run of the program
  double ci95_low_ns = 0.0;
  double ci95_high_ns = 0.0;
  double mad_ns = 0.0;
  double min_ns = 0.0;
  double p10_ns = 0.0;
  double p90_ns = 0.0;
  double mean_ns = 0.0;
  double round_sd = 0.0;  ///< standard deviation of the log round medians
  std::int64_t severe = 0;
  double drift = 0.0;
  std::vector<std::string> flags;  ///< "noisy", "drift", ...
};

struct OpShare {
  std::string label;
  std::string kind;
  std::string implementation;
  double median_ns = 0.0;
  double share = 0.0;  ///< of the step's median
  double flop = 0.0;
  double bytes = 0.0;
};

/// Memory of a step by purpose: "weights", "optimizer state" (harness/core/step_parts.h).
struct MemoryPart {
  std::string kind;
  std::int64_t bytes = 0;
};

/// The device limit that binds a case, and the case's share of it. Fractions: 1 is the limit.
struct PeakShare {
  std::string limit;                      ///< the arithmetic ("bf16"; rates in FLOP/s), "memory" or "link" (B/s)
  double rate = 0.0;                      ///< what the case reached
  std::optional<double> peak{};           ///< published, or computed from units and clock; the higher of two ends
  std::string peak_source;                ///< its source and reliability
  std::optional<double> of_peak{};        ///< rate over peak
  std::optional<double> peak_at_clock{};  ///< at the median clock of the case's rounds
  std::optional<double> of_peak_at_clock{};
  std::optional<double> of_best{};  ///< over the best gemm of the same recipe, or the best memory case, of this run
  std::string best_case;            ///< its id
  std::string finding;              ///< why the rate is impossible: above the device's limit
};

/// The rates of a collective as nccl-tests defines them (reference/ops/collective.h).
struct CollectiveRates {
  double message_bytes = 0.0;
  double algorithm_bytes_per_s = 0.0;  ///< algbw: message over time
  double bus_bytes_per_s = 0.0;        ///< busbw: bytes on the wire over time
};

struct RankSpread {
  int units = 0;               ///< processors or SMs of all ranks together
  double straggler = 0.0;      ///< slowest rank over the median of ranks, minus 1; the median of all samples
  int slowest = 0;             ///< the rank that was slowest most often
  double slowest_share = 0.0;  ///< of the samples
  std::optional<double> compute_only_ns{};        ///< the step without its collectives; per run
  std::optional<double> exposed_communication{};  ///< the rest, as a share of the step
  std::optional<double> efficiency{};             ///< rate per unit over that of the same case on one rank, in this run
  /// The partner of each rank where ranks exchange in pairs (itself: none): then times are those of links.
  std::optional<std::vector<int>> partners{};
};

struct Derived {
  double flop = 0.0;   ///< per run, algorithmic
  double bytes = 0.0;  ///< per run, compulsory
  double flop_per_s = 0.0;
  double bytes_per_s = 0.0;
  double items_per_s = 0.0;
  std::string item;  ///< the name of an item
  double headline = 0.0;
  std::string headline_unit;  ///< "FLOP/s", "B/s", "tokens/s"
  std::vector<OpShare> breakdown;
  double remainder = 0.0;                       ///< step minus the sum of its ops alone, over the step; signed
  std::optional<double> energy_j{};             ///< per run, if a round was long enough to measure it (2 s)
  std::optional<double> energy_per_work_j{};    ///< per unit of the headline's work: FLOP, B or item
  std::optional<CollectiveRates> collective{};  ///< of a case that is one collective
  std::optional<RankSpread> ranks{};            ///< if there are several
  std::optional<PeakShare> peak{};              ///< if the device's limits, or comparable cases, are known
};

/// Measurements of a case whose run was interrupted. It has no rates.
struct Unfinished {
  std::string why;             ///< the interruption: "SIGTERM"
  std::string checked;         ///< the checks done and not done by then
  std::string implementation;  ///< CaseRecord::implementation
  std::int64_t batch = 0;      ///< runs per sample
  std::vector<RoundRecord> rounds;
};

struct CaseRecord {
  Case c;
  std::string id;
  /// Digest of the definition behind the id: 16 hexadecimal digits (harness/run/case_record.h). None before schema 1.4.
  std::optional<std::string> def_hash{};
  Verdict verdict = Verdict::error;
  std::string reason;
  std::string implementation;                     ///< of a single op, or "" for a program (see parity.ops)
  std::optional<Choice> choice{};                 ///< of a single op, if there was one
  std::optional<std::int64_t> workspace_bytes{};  ///< scratch memory: the largest of the case's ops
  /// The rewrites by fusion, with unmeasured gains marked: "residual1+ln2 = residual_norm_forward".
  std::optional<std::vector<std::string>> rewrites{};
  Parity parity;
  std::int64_t batch = 0;         ///< runs per sample
  int copies = 0;                 ///< cold copies
  std::int64_t memory_bytes = 0;  ///< allocated for the case
  /// Memory of the tensors of a program of several ops by purpose, without reuse, guards and scratch. None before
  /// schema 1.9.
  std::optional<std::vector<MemoryPart>> memory{};
  std::vector<RoundRecord> rounds;
  Summary summary;
  Derived derived;
  std::optional<Unfinished> unfinished{};  ///< of a skipped case that had been timed. None before schema 1.14
  std::string rerun;                       ///< a command line that runs only this case
  std::optional<double> plan_s{};          ///< wall time of choosing implementations; none before schema 1.14
  double check_s = 0.0;                    ///< wall time of the checks
  double time_s = 0.0;

  /// Case::key(); unique in a run.
  [[nodiscard]] std::string key() const { return c.contender.empty() ? id : id + "@" + c.contender; }
};

/// Whether all ops of the case are of these kinds ("gemm", "copy"); false if it has none.
[[nodiscard]] bool consists_of(const CaseRecord& record, std::initializer_list<std::string_view> kinds);
/// Whether the case measures memory bandwidth: copies and triads, as in STREAM (McCalpin).
[[nodiscard]] bool is_stream(const CaseRecord& record);

// Reliability of times: one rule for the console, the page, comparisons and exports, independent of a record's flags.

/// A timing is unreliable if its 95% interval extends more than a quarter of the median to either side, on average: two
/// equal times can then look different by half.
inline constexpr double max_half_width = 0.25;

/// Half the width of the 95% interval over the median: 0.04 is +-4%, as in tables. None if nothing was timed, or for a
/// single round, which has no spread.
[[nodiscard]] std::optional<double> half_width(const Summary& summary);

/// Whether the case was timed with an interval wider than max_half_width, or unknown. Such a time is shown and marked,
/// but is excluded from bests, roofs and efficiencies. It does not change the verdict.
[[nodiscard]] bool timing_unreliable(const Summary& summary);

/// Whether a share, a part's time over the whole's, is known well enough. Parts have no separate intervals and were
/// timed in the same minutes, so they count as uncertain as the whole: the share's error is share x half_width x
/// sqrt(2). It is meaningless from 25 points (max_half_width).
[[nodiscard]] bool share_is_reliable(double share, const Summary& whole);

/// Derived::remainder, if there is a breakdown and the sum of its shares is sure.
[[nodiscard]] std::optional<double> reliable_remainder(const CaseRecord& record);

/// RankSpread::exposed_communication, if the share of computing is sure and exceeds the whole step by no more than its
/// error. A part longer than the whole step was disturbed.
[[nodiscard]] std::optional<double> reliable_exposed(const CaseRecord& record);

/// RankSpread::efficiency of a case with reliable timing; add_efficiency() checks the case on one rank.
[[nodiscard]] std::optional<double> reliable_efficiency(const CaseRecord& record);

}  // namespace gpubench
