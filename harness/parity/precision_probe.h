// What arithmetic a plan really uses: up to three launches of the very plan that is timed, on data from whose results
// it can be read. Realistic data within a derived bound do not show all of it: f32 products of inputs in tf32 or in two
// bf16 halves, sums in 14 bits, partial sums in the output's type, or flushed denormals may stay inside.
//
//   SumProbe    bits, rounding and width of the unit that adds; what becomes of sums over distant k
//   ValueProbe  bits of the inputs; rounding of the store; denormals, NaN, infinities
//   OrderProbe  the order in which it adds
//
// Pure functions of the call, the seed and the results: no backend is seen here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/record.h"
#include "harness/parity/probes.h"
#include "reference/ops/definition.h"

namespace gpubench {

class PrecisionProbe {
 public:
  /// Both must outlive it. `max_ordered`: positions of k of which the order is read; fewer than 3: none.
  PrecisionProbe(const CallSpecs& op, const OpProduct& product, std::uint64_t seed,
                 std::int64_t max_ordered = gpubench::max_ordered);

  /// The next launch, which may follow from what the last one showed; none where all is read.
  [[nodiscard]] std::optional<ProbeLaunch> next();
  /// What it left: `values` of its `wanted`, in order.
  void take(std::span<const double> values);

  [[nodiscard]] const SumReading& sums() const { return sums_; }
  [[nodiscard]] const ValueReading& values() const { return values_; }
  [[nodiscard]] const std::vector<OrderReading>& order() const { return order_; }
  /// Everything in words, and the verdict: `downgraded` where a reading is below the declared arithmetic, unless it is
  /// among `allowed` (names of LowerArithmetic). Label, implementation and number of ops are the caller's.
  [[nodiscard]] PlanArithmetic arithmetic(std::span<const std::string> allowed = {}) const;

 private:
  enum class Stage { sums, values, order, done };

  const CallSpecs& op_;
  const OpProduct& product_;
  std::uint64_t seed_;
  std::int64_t max_ordered_;
  Stage stage_ = Stage::sums;
  std::optional<SumProbe> sum_probe_;
  std::optional<ProbeData> data_;  ///< of the two below
  std::optional<ValueProbe> value_probe_;
  std::optional<OrderProbe> order_probe_;
  bool has_sums_ = false;
  SumReading sums_;
  ValueReading values_;
  std::vector<OrderReading> order_;
};

/// Whether a product can be read at all: its factor is a power of two, so that it moves no bits, and its types are
/// floating-point ones of known range, the output's with 16 bits or more.
[[nodiscard]] bool is_readable(const CallSpecs& op, const OpProduct& product);

// Block formats allow several results for a block with an infinity (mx*) and for scales below e4m3's normal numbers
// (nvfp4; reference/ops/quantize.h). One launch of quantize_blocks shows which one a plan gives.

[[nodiscard]] ProbeLaunch open_result_launch(const CallSpecs& quantize_blocks);
/// `scale`: from that launch.
[[nodiscard]] PlanArithmetic open_result(const CallSpecs& quantize_blocks, double scale);

// Units that add up products, by what probes read of them, and what a reading means for what an op declares.

/// What is known about a unit, and from where.
struct KnownAccumulator {
  std::string_view name;
  int bits;  ///< of a running sum
  SumRounding rounding;
  int at_once;   ///< products added at once
  int fraction;  ///< bits kept behind the leading one of the largest of them; 0 where one is added at a time
  std::string_view source;
};
/// In the order of their age. Units that no reading tells apart share a line.
[[nodiscard]] std::vector<KnownAccumulator> known_accumulators();

/// "Hopper or Blackwell, 16-bit", ", emptied every 128 products" with it where a narrow sum is added to a wider one,
/// and
/// ", partial sums in bf16"; "unknown" where nothing known fits; empty where too little was read to tell.
[[nodiscard]] std::string accumulator_name(const SumReading& sums);

/// An arithmetic below the declared one, as it was read.
struct Shortfall {
  std::string_view name;  ///< of LowerArithmetic: what `--arithmetic` takes
  std::string seen;       ///< "running sums of 11 bits"
  std::string declared;   ///< "24 (f32)"
};
/// Everything in which the readings are below what `math` declares for operands of types `a` and `b`. `blocks`: with a
/// scale for each block. What was not read is no shortfall, and neither is a product of 8-bit types whose sums of 14
/// bits are emptied every 128 products or sooner, or may be: that is what they declare without fast accumulation.
[[nodiscard]] std::vector<Shortfall> shortfalls(const SumReading& sums, const ValueReading& values, const Math& math,
                                                DType a, DType b, bool blocks);

}  // namespace gpubench
