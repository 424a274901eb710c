// The meaning of an op: cost, fp64 semantics, error bound, derivative. One OpDefinition per op, in x_textbook.cpp.
// Backends must not include this file, which would make the check circular; they use an op's attributes and shapes
// (x.h). Plain fp64 with the standard library, and no threads: callers distribute the wanted units.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/tensor.h"
#include "reference/ops/op_product.h"

namespace gpubench {

class GradientTape;

/// Algorithmic work of a call: 2 FLOP per multiply-add; bytes that must move at least once.
struct Cost {
  double flop = 0.0;
  double bytes = 0.0;          ///< of a collective: bytes on the wire (collective.h)
  double message_bytes = 0.0;  ///< of a collective: size of its message
};

[[nodiscard]] inline double elements_of(const TensorSpec& tensor) {
  return static_cast<double>(tensor.shape.elements());
}
/// Bytes of the elements, without gaps between strided rows or padding of blocks.
[[nodiscard]] inline double bytes_moved(const TensorSpec& tensor) {
  return elements_of(tensor) * bits_of(tensor.dtype) / 8.0;
}
[[nodiscard]] double bytes_moved(std::span<const TensorSpec> tensors);
[[nodiscard]] double elements_of(std::span<const TensorSpec> tensors);

struct CallSpecs {
  const OpCall& call;
  std::span<const TensorSpec> inputs, outputs;

  /// Throws ProgramError if the call lacks it.
  [[nodiscard]] const TensorSpec& input(std::string_view name) const { return Named<TensorSpec>(call, inputs)[name]; }
  [[nodiscard]] const TensorSpec& output(int index) const { return outputs[static_cast<std::size_t>(index)]; }
  /// Compulsory traffic: every tensor crosses memory once.
  [[nodiscard]] double bytes() const { return bytes_moved(inputs) + bytes_moved(outputs); }
};

/// Cost of reading one element that shares no cache line with its neighbours, in fp64 operations.
inline constexpr double strided_read_flop = 6.0;

/// An output as `count` units, each a run of `elements` consecutive logical elements that are computed together (an
/// element of a gemm, a row of a norm, a query row of attention).
struct CheckUnits {
  std::int64_t count = 0;
  std::int64_t elements = 1;
  double flop_per_unit = 1.0;  ///< fp64 work of the textbook per unit, for the budget of samples
  /// Units where bugs tend to show (tile edges, borders, first causal rows): part of every sample.
  std::vector<std::int64_t> landmarks;
};

/// The true value, and the largest error of a correct result before its single rounding to the storage type. The
/// checker accepts iff round(value - bound) <= got <= round(value + bound). With bound 0 that is one number; zeros
/// match with either sign, and NaNs with any payload.
struct Expected {
  double value = 0.0;
  double bound = 0.0;
  bool bitwise = false;  ///< a zero must also have the sign of round(value): the op only moves numbers
};

/// For ops that only move or cast numbers: round(value), bit for bit.
[[nodiscard]] inline Expected moved(double value) { return {value, 0.0, true}; }

/// What an op read, in storage type; for updated values the content before the op ran.
struct Operands {
  const OpCall& call;
  std::span<const TensorView> inputs;
  std::span<const TensorSpec> outputs;
  /// The op's outputs, for ops with outputs that are judged by other outputs, themselves judged (a sum by its
  /// summands). Empty if the op has not run; the textbook then uses its own values.
  std::span<const TensorView> written{};
  /// Sums of these data are exact in any order (Contraction, RevealingData), so bounds have no part for them.
  bool exact_sums = false;
  bool sparse = false;

  /// Throws ProgramError if the call lacks it.
  [[nodiscard]] const TensorView& input(std::string_view name) const { return Named<TensorView>(call, inputs)[name]; }
};

struct Mismatch {
  std::int64_t linear = 0;
  double got = 0.0;
};

/// An axis along which an output is linear in its operands: a weighted sum of its elements along it equals the op's
/// result for operands summed alike.
struct LinearAxis {
  int output_axis = 0;
  /// Inputs with this axis, and its index in each.
  std::vector<std::pair<std::size_t, int>> operands;
};

/// The sums that make an op's first output: products of two inputs, element by element along an axis of each. Data can
/// make these sums exact (harness/parity/exact_data.h).
struct Contraction {
  std::size_t a = 0, b = 1;
  int a_axis = 0, b_axis = 0;
  std::int64_t extent = 0;        ///< elements along the axis per sum; an axis may have several times as many (groups)
  std::int64_t repeats = 1;       ///< such runs per sum: the taps of a filter
  bool ragged = false;            ///< run lengths and starts vary
  std::size_t inputs = SIZE_MAX;  ///< the first `inputs` inputs reach the sums; the others may hold anything
  double factor = 1.0;            ///< alpha and beta: of the sum, and of an addend c_in
  double c_in_factor = 0.0;
};

struct RevealingData {
  struct Input {
    std::size_t index = 0;
    std::function<double(std::int64_t element)> value;  ///< by logical linear index
    std::int64_t period = 0;                            ///< elements after which values repeat; 0: never
  };
  std::string_view name;
  std::vector<Input> inputs;  ///< other inputs stay unchanged
  bool exact_sums = false;
  /// Sums have few nonzero terms, and the textbook adds only these, so that all elements can be judged at about the
  /// cost of making the data.
  bool sparse = false;
};

class OpDefinition {
 public:
  virtual ~OpDefinition() = default;
  [[nodiscard]] virtual OpKind kind() const = 0;
  [[nodiscard]] virtual Cost cost(const CallSpecs& op) const = 0;
  [[nodiscard]] virtual CheckUnits units(const CallSpecs& op, int output) const = 0;
  /// The rule that evaluate() applies to one output, with its numbers: "Rule G: 2 u sqrt(768) max(|C| + Q, 2 S), u =
  /// 2^-24", "exact, bitwise".
  [[nodiscard]] virtual std::string bound(const CallSpecs& op, int output) const = 0;
  /// Expected values of the wanted units of one output: judged[i * elements + e] is element e of wanted[i].
  /// Thread-safe. `wanted` is sorted ascending.
  virtual void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                        std::span<Expected> judged) const = 0;
  /// Whether an output of only NaN is correct although no input is NaN: a mean over no labels. False for invalid inputs
  /// (a label outside the classes), for which the textbook's NaN proves nothing.
  [[nodiscard]] virtual bool nan_is_correct(const Operands& /*operands*/, int /*output*/) const { return false; }
  /// Whether evaluate() uses Operands::written, which must then be in host memory.
  [[nodiscard]] virtual bool reads_written(const OpCall& /*call*/) const { return false; }
  /// Groups of outputs that must be bitwise identical, whatever their bounds.
  [[nodiscard]] virtual std::vector<std::vector<int>> identical_outputs(const OpCall& /*call*/) const { return {}; }
  /// Axes, cheapest first, for checking a whole output by few sums (harness/parity/projection.h); sums may use any
  /// subset. Outputs that evaluate() needs for this one have the same axes.
  [[nodiscard]] virtual std::vector<LinearAxis> linear_axes(const CallSpecs& /*op*/, int /*output*/) const {
    return {};
  }
  /// Empty if something else than sums is rounded, whatever the data: a factor that is not a power of two.
  [[nodiscard]] virtual std::optional<Contraction> contraction(const CallSpecs& /*op*/) const { return {}; }
  /// For extra launches, apart from those of the case.
  [[nodiscard]] virtual std::vector<RevealingData> revealing_data(const CallSpecs& /*op*/) const { return {}; }
  /// A fault that the check of this call is known to miss: "a mean off by ..."; empty if none is known.
  [[nodiscard]] virtual std::string unseen(const CallSpecs& /*op*/) const { return {}; }
  /// The matrix product that the op computes, if any, for data that show its arithmetic.
  [[nodiscard]] virtual std::optional<OpProduct> product(const CallSpecs& /*op*/) const { return {}; }
  /// A common cause of an output's wrong elements: "rank 1's contribution is missing, in chunk 2 of 4 (elements 512 to
  /// 767)"; empty if unknown. `wrong` has at least one element.
  [[nodiscard]] virtual std::string explain(const Operands& /*operands*/, int /*output*/,
                                            std::span<const Mismatch> /*wrong*/) const {
    return {};
  }
  /// Appends the ops that compute the gradients of the wanted inputs. Default: throws "<kind> has no derivative".
  virtual void derivative(Program& program, const OpCall& call, GradientTape& tape) const;
};

template <const OpKind& op>
class DefinitionOf : public OpDefinition {
 public:
  [[nodiscard]] OpKind kind() const final { return op; }
};

[[nodiscard]] const OpDefinition& definition(OpKind kind);

/// Null if there is none of this name.
[[nodiscard]] const OpDefinition* find_definition(std::string_view name);

[[nodiscard]] std::span<const OpDefinition* const> definitions();

[[nodiscard]] Cost cost_of(const Program& program, const OpCall& call);
/// Sum over the timed ops. Bytes are counted per op.
[[nodiscard]] Cost cost_of(const Program& program);

using Definitions = std::vector<const OpDefinition*>;
[[nodiscard]] std::span<const Definitions> textbooks();

template <class... Ops>
[[nodiscard]] Definitions definitions_of() {
  static const std::tuple<Ops...> held;
  return {&std::get<Ops>(held)...};
}

/// What derivative rules see of differentiate(): wanted gradients, their destinations, and their accumulation.
class GradientTape {
 public:
  virtual ~GradientTape() = default;

  /// The gradient that flows into an output; empty if none does (an unused output) and for the loss (is_loss()).
  [[nodiscard]] virtual std::optional<ValueId> of(ValueId output) const = 0;
  [[nodiscard]] virtual bool is_loss(ValueId output) const = 0;
  [[nodiscard]] virtual bool wanted(ValueId input) const = 0;
  /// A value reserved for the gradient of `input`, with its shape and type (8-bit inputs: bf16); for a part of a packed
  /// storage, the same part of the packed gradient. Call at most once per input and rule, then contribute() it.
  [[nodiscard]] virtual ValueId destination(ValueId input) = 0;
  /// The 8-bit type of gradients in products of 8-bit operands (Recipe::gradient_operand).
  [[nodiscard]] virtual DType gradient_operand() const = 0;
  /// Contributions to one input are summed.
  virtual void contribute(ValueId input, ValueId gradient) = 0;
  /// "<label of the forward op>.<suffix>", unique.
  [[nodiscard]] virtual std::string label(const OpCall& forward, std::string_view suffix) const = 0;
};

/// The gradient of an output of `call`; empty if none flows. Throws ProgramError if the output is the loss: only
/// cross_entropy_forward starts a backward pass without a seed gradient.
[[nodiscard]] std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output);

/// Throws ProgramError if a gradient flows into saved or updated statistics, which only the norm's backward may read.
void refuse_gradient_of_statistics(const OpCall& call, const GradientTape& tape);

/// The gradient of a collective's output; its backward needs those of all. Throws ProgramError for the loss, and naming
/// an output that none flows into.
[[nodiscard]] ValueId required_gradient(const Program& program, const OpCall& call, const GradientTape& tape,
                                        ValueId output);
[[nodiscard]] std::vector<ValueId> incoming_gradients(const Program& program, const OpCall& call,
                                                      const GradientTape& tape);

// Reading wanted elements: contiguous ones as one run, in chunks, so that full checks run at decoding speed.

/// out[i] = element offset + wanted[i] of the view. `wanted` is ascending.
void gather(const TensorView& view, std::span<const std::int64_t> wanted, std::int64_t offset, std::span<double> out);

template <class Consume>
void for_each_chunk(const TensorView& view, Consume consume) {
  std::array<double, 1024> buffer;
  const std::int64_t count = view.shape().elements();
  for (std::int64_t first = 0; first < count; first += static_cast<std::int64_t>(buffer.size())) {
    const auto size = std::min<std::int64_t>(static_cast<std::int64_t>(buffer.size()), count - first);
    const std::span<double> chunk(buffer.data(), static_cast<std::size_t>(size));
    view.read(first, chunk);
    consume(first, std::span<const double>(chunk));
  }
}

/// judged[i] = formula(wanted[i], {elements wanted[i] of the views}).
template <std::size_t views, class Formula>
void judge_elements(const std::array<TensorView, views>& inputs, std::span<const std::int64_t> wanted,
                    std::span<Expected> judged, Formula formula) {
  constexpr std::size_t chunk = 512;
  std::array<std::array<double, chunk>, views> values;
  for (std::size_t first = 0; first < wanted.size(); first += chunk) {
    const std::size_t size = std::min(chunk, wanted.size() - first);
    for (std::size_t v = 0; v < views; ++v) {
      gather(inputs[v], wanted.subspan(first, size), 0, std::span(values[v]).first(size));
    }
    for (std::size_t i = 0; i < size; ++i) {
      std::array<double, views> element;
      for (std::size_t v = 0; v < views; ++v) element[v] = values[v][i];
      judged[first + i] = formula(wanted[first + i], element);
    }
  }
}

/// Elements of an image [n, h, w, channels]: borders, every phase of a small stride, and the middle; of the first image
/// and channel, and the last.
[[nodiscard]] std::vector<std::int64_t> image_landmarks(const Shape& shape, std::int64_t stride_h = 1,
                                                        std::int64_t stride_w = 1);

/// Units of one element each. Landmarks: the first and last element, and the ends of the first and last row.
[[nodiscard]] CheckUnits element_units(const Shape& shape, double flop_per_unit);

/// Units of `elements` elements, one per row of x. Landmarks: one row of each kind that norm fills make, and the last.
[[nodiscard]] CheckUnits norm_row_units(const Shape& x, std::int64_t elements, double flop_per_element);

}  // namespace gpubench
