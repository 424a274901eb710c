// The arithmetic of a plan, from up to three launches of the timed plan on special data. Realistic data within a bound
// hide some of it: f32 products of tf32 inputs or of two bf16 halves, sums in 14 bits, partial sums in the output's
// type, flushed denormals.
//
//   SumProbe    bits, rounding and width of the unit that adds; sums over distant k
//   ValueProbe  bits of the inputs; rounding of the store; denormals, NaN, infinities
//   OrderProbe  the order of addition
//
// Pure functions of the call, the seed and the results, without access to a backend.
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
  /// Both must outlive it. `max_ordered`: positions of k whose order is read; none if fewer than 3.
  PrecisionProbe(const CallSpecs& op, const OpProduct& product, std::uint64_t seed,
                 std::int64_t max_ordered = gpubench::max_ordered);

  /// The next launch, which may depend on the results of the last; none when all is read.
  [[nodiscard]] std::optional<ProbeLaunch> next();
  /// `values`: the launch's results at its `wanted` elements, in order.
  void take(std::span<const double> values);

  [[nodiscard]] const SumReading& sums() const { return sums_; }
  [[nodiscard]] const ValueReading& values() const { return values_; }
  [[nodiscard]] const std::vector<OrderReading>& order() const { return order_; }
  /// All readings in words, and the verdict: `downgraded` where a reading is below the declared arithmetic and not
  /// among `allowed` (names of LowerArithmetic). The caller adds label, implementation and number of ops.
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

/// Whether a product is readable: its factor is a power of two, and its types are floating-point types of known range,
/// the output's with 16 bits or more.
[[nodiscard]] bool is_readable(const CallSpecs& op, const OpProduct& product);

// Block formats allow several results for a block with an infinity (mx*) and for scales below e4m3's normal numbers
// (nvfp4; reference/ops/quantize.h). One launch of quantize_blocks shows the plan's choice.

[[nodiscard]] ProbeLaunch open_result_launch(const CallSpecs& quantize_blocks);
/// `scale`: from that launch.
[[nodiscard]] PlanArithmetic open_result(const CallSpecs& quantize_blocks, double scale);

// Units that add up products, identified by readings, and readings below the declared arithmetic.

struct KnownAccumulator {
  std::string_view name;
  int bits;  ///< of a running sum
  SumRounding rounding;
  int at_once;   ///< products added at once
  int fraction;  ///< bits kept below the leading one of the largest product; 0 where one is added at a time
  std::string_view source;
};
/// In the order of their age. Units with equal readings share a line.
[[nodiscard]] std::vector<KnownAccumulator> known_accumulators();

/// "Hopper or Blackwell, 16-bit", with ", emptied every 128 products" where a narrow sum is added to a wider one, and
/// ", partial sums in bf16". "unknown" where no known unit fits; empty where too little was read.
[[nodiscard]] std::string accumulator_name(const SumReading& sums);

struct Shortfall {
  std::string_view name;  ///< of LowerArithmetic: what `--arithmetic` takes
  std::string seen;       ///< "running sums of 11 bits"
  std::string declared;   ///< "24 (f32)"
};
/// All readings below the arithmetic that `math` declares for operands of types `a` and `b`. `blocks`: with a scale for
/// each block. Missing readings are not shortfalls. Neither are 8-bit products whose sums of 14 bits are, or may be,
/// emptied at least every 128 products: the declared arithmetic without fast accumulation.
[[nodiscard]] std::vector<Shortfall> shortfalls(const SumReading& sums, const ValueReading& values, const Math& math,
                                                DType a, DType b, bool blocks);

}  // namespace gpubench
