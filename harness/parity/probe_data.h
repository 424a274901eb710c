// Operands of a probe's launches, zeros with a few numbers on lines of an op's matrix product
// (reference/ops/op_product.h), and the results that are read.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/parity/textbook_outputs.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// A tensor whose elements are mostly alike.
struct SparseTensor {
  struct Element {
    std::int64_t linear = 0;
    double value = 0.0;
  };
  TensorSpec spec;
  double rest = 0.0;
  std::vector<Element> elements{};  ///< of duplicates the last one counts
  [[nodiscard]] HostTensor dense() const;
};

struct ProbeLaunch {
  std::vector<SparseTensor> inputs;  ///< all of the call's, in its order
  int output = 0;
  std::vector<std::int64_t> wanted;  ///< linear, ascending
};

/// p of a type whose unit roundoff is 2^-p.
[[nodiscard]] inline int significant_bits(DType type) { return -std::ilogb(unit_roundoff(type)); }

/// Exponents of the largest and smallest normal power of two in f16; sums in f16 must stay within them.
inline constexpr int max_f16_exponent = 15, min_f16_exponent = -14;

/// 2^least ... 2^most, each also times 1.5.
struct Exponents {
  int least = 0, most = 0;
};

/// Two sets of lines of a product. The left side, rows of a, is the smaller; if a has more rows than b has columns, the
/// sides are swapped.
class ProbeData {
 public:
  /// Both must outlive it.
  ProbeData(const CallSpecs& op, const OpProduct& product);

  [[nodiscard]] std::int64_t left_lines() const { return left_.lines->size(); }
  [[nodiscard]] std::int64_t right_lines() const { return right_.lines->size(); }
  /// Along k. Of 4-bit types one in each block, because their range is that of the block's scale.
  [[nodiscard]] std::int64_t positions() const { return product_.k() / step_; }
  /// Elements of k from a position to the next.
  [[nodiscard]] std::int64_t step() const { return step_; }
  [[nodiscard]] DType left_type() const { return left_.spec->dtype; }
  [[nodiscard]] DType right_type() const { return right_.spec->dtype; }
  [[nodiscard]] DType output_type() const { return op_.outputs[static_cast<std::size_t>(product_.output)].dtype; }
  /// Powers of two that the operand holds as normal numbers (block scales may be denormal), so far inside the range
  /// that products of two are normal in f32. `denormals`: also those of types with few exponents, without the 1.5.
  [[nodiscard]] Exponents left_range(bool denormals = false) const { return range(left_, denormals); }
  [[nodiscard]] Exponents right_range(bool denormals = false) const { return range(right_, denormals); }
  [[nodiscard]] int factor_exponent() const { return std::ilogb(product_.factor); }
  /// Whether the left operand is the op's b.
  [[nodiscard]] bool turned() const { return turned_; }

  /// The operand must hold the value exactly; else throws std::logic_error.
  void left(std::int64_t line, std::int64_t position, double value) { put(left_, line, position, value); }
  void right(std::int64_t line, std::int64_t position, double value) { put(right_, line, position, value); }
  void want(std::int64_t left_line, std::int64_t right_line) { wanted_.push_back(element(left_line, right_line)); }

  /// The launch; no more numbers may be put after it.
  [[nodiscard]] ProbeLaunch launch();
  /// Stores the launch's results, divided by the product's factor. `values`: of its `wanted`, in order.
  void take(std::span<const double> values);
  [[nodiscard]] double result(std::int64_t left_line, std::int64_t right_line) const;

 private:
  struct Side {
    std::size_t input = 0;
    const TensorSpec* spec = nullptr;
    const Offsets* lines = nullptr;
    const Offsets* along = nullptr;  // k
    const OpProductScales* scales = nullptr;
  };
  [[nodiscard]] Exponents range(const Side& side, bool denormals) const;
  void put(const Side& side, std::int64_t line, std::int64_t position, double value);
  [[nodiscard]] std::int64_t element(std::int64_t left_line, std::int64_t right_line) const;

  const CallSpecs& op_;
  const OpProduct& product_;
  bool turned_;
  Side left_, right_;
  std::int64_t step_ = 1;
  std::vector<SparseTensor> inputs_;
  std::vector<std::int64_t> wanted_;
  std::vector<double> values_;
};

// Powers of two for sums of 2^E, s and -2^E: which E fit into the range of two operands, split so that as few lines as
// possible give all E.

/// E of at least 3: one of 2^3 and 1 must be exact in any sum. E of at most 60: more than f64 keeps.
inline constexpr int min_exponent = 3, max_exponent = 60;

/// Row i of the left operand and column v of the right one give E = (left + i) + (right + v rows) - unit; s is
/// 2^one_left 2^one_right.
struct ExponentPlan {
  int first = min_exponent, last = 0;  ///< E
  int rows = 0, variants = 0;
  int left = 0, right = 0;
  int one_left = 0, one_right = 0;
  int high_left = 0, high_right = 0, high = 0;  ///< of rows with a single, large E

  [[nodiscard]] int unit() const { return one_left + one_right; }
  [[nodiscard]] int count() const { return last - first + 1; }
};

/// The exponent of s that leaves most room above it: 0 if there is enough, else the least at which s is a normal number
/// of the operands, of the output and, except for 4-bit types, of sums in f16.
[[nodiscard]] int min_unit(const ProbeData& data);

/// The fewest variants that reach E = `enough`, else the most with two columns for each variant. None where at most a
/// few E fit.
[[nodiscard]] std::optional<ExponentPlan> plan_exponents(const Exponents& left, const Exponents& right, int unit,
                                                         int enough, std::int64_t max_rows, std::int64_t max_columns);

}  // namespace gpubench
