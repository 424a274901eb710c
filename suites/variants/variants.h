// Suite variants: every op in small programs that combine its attributes pairwise, with extents off every power of two.
// For correctness only: run by `--suite variants` (collectives with `--ranks 2`) and `impl check`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/transform/differentiate.h"
#include "suites/suites.h"

namespace gpubench::variants {

// Pairwise covering arrays: few rows of values in which any two values of two factors occur together. Most defects of
// combinations take two (Kuhn, Wallace, Gallo, "Software fault interactions", IEEE TSE 30, 2004).

/// The index of each factor's value.
using Row = std::vector<std::size_t>;

/// Value `first_value` of factor `first` with value `second_value` of factor `second`; first < second.
struct FactorPair {
  std::size_t first, first_value, second, second_value;
  friend auto operator<=>(const FactorPair&, const FactorPair&) = default;
};

struct Covering {
  std::vector<Row> rows;            ///< the first has value 0 of each factor, unless that is refused
  std::vector<FactorPair> refused;  ///< pairs for which no accepted row was found
};

/// `sizes`: the number of values of each factor, at least one. `accepts`: whether a row makes sense. A pair is refused
/// where no accepted row was found in which at most two other factors differ from value 0, and no row has it. A single
/// factor gets a row for each accepted value. Deterministic.
[[nodiscard]] Covering cover_pairs(std::span<const std::size_t> sizes, const std::function<bool(const Row&)>& accepts);

/// An attribute of the op, or something else that its variants differ in (extents, a second operand).
struct Factor {
  std::string_view name;
  /// At most six; the first is the baseline. Empty: false and true, or every word in the order of declaration.
  std::vector<AttributeValue> values = {};
};

/// Builds one call of an op. Values are named by the call's label.
class VariantBuild {
 public:
  VariantBuild(Program& program, const Recipe& recipe, std::int64_t extent, int all_ranks, std::string label,
               Attributes attributes, std::map<std::string_view, std::int64_t> others)
      : p(program),
        r(recipe),
        n(extent),
        ranks(all_ranks),
        label(std::move(label)),
        attributes_(std::move(attributes)),
        others_(std::move(others)) {}

  Program& p;
  const Recipe& r;
  std::int64_t n;  ///< the case's extent, which others are near
  int ranks;       ///< of the case: 1 but for collectives
  std::string label;
  std::vector<ValueId> y, wanted;  ///< what gradients flow into, and the values whose gradients are wanted

  template <class T>
  [[nodiscard]] const T& attributes() const {
    return attributes_.as<T>();
  }
  /// The value of a factor that is no attribute.
  [[nodiscard]] std::int64_t other(std::string_view factor) const { return others_.at(factor); }

  /// A source in the recipe's type for activations, in its wide type, or of i32 from `low` to `high`.
  [[nodiscard]] ValueId in(std::string_view name, const Shape& shape, Fill fill = Fill::normal(1.0));
  [[nodiscard]] ValueId wide(std::string_view name, const Shape& shape, Fill fill = Fill::normal(1.0));
  [[nodiscard]] ValueId integers(std::string_view name, const Shape& shape, std::int64_t low, std::int64_t high);
  /// Another source. `name` need not be unique.
  [[nodiscard]] ValueId source(std::string_view name, DType type, const Shape& shape, Fill fill);

 private:
  Attributes attributes_;
  std::map<std::string_view, std::int64_t> others_;
};

/// The variants of an op and, where the build names values for it, of its gradients.
struct Variants {
  std::string name;
  OpKind kind;  ///< the op whose attributes the factors name
  std::vector<Factor> factors;
  void (*build)(VariantBuild& call);
  std::vector<std::string> recipes = {"f32", "bf16", "f16"};
};

/// The pairs that the builder refuses in this recipe: "beta=-1.5 with epilogue=gelu_gradient".
[[nodiscard]] std::vector<std::string> refused_pairs(const Variants& variants, const Recipe& recipe);

/// One call for each row of the covering, then the gradients of all.
struct VariantProgram {
  Program program;
  int forward_ops = 0;  ///< ops before those of the gradients
  std::vector<Seed> seeds;
  std::map<ValueId, ValueId> gradients;  ///< of the wanted values
};
[[nodiscard]] VariantProgram program_of(const Variants& variants, std::int64_t n, const Recipe& recipe, int ranks = 1);

/// By subject, one file each.
[[nodiscard]] std::vector<Variants> matrix_variants();
[[nodiscard]] std::vector<Variants> attention_variants();
[[nodiscard]] std::vector<Variants> image_variants();
[[nodiscard]] std::vector<Variants> row_variants();
[[nodiscard]] std::vector<Variants> element_variants();
[[nodiscard]] std::vector<Variants> optimizer_variants();
[[nodiscard]] std::vector<Variants> expert_variants();
/// All of them, on one rank.
[[nodiscard]] std::vector<Variants> all_variants();
/// Of two ranks or more.
[[nodiscard]] std::vector<Variants> collective_variants();

}  // namespace gpubench::variants
