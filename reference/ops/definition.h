// What an op *means*: cost, fp64 semantics, error bound, derivative. One OpDefinition per op, in x_textbook.cpp.
//
// Backends never include this file: they see an op's attributes and shapes (x.h) only, else parity would be circular.
// Plain fp64 with the standard library, no threads: callers split the wanted units over threads as they like.
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

/// Algorithmic work of one call: FLOP counted as 2 per multiply-add, bytes that must move at least once.
struct Cost {
  double flop = 0.0;
  double bytes = 0.0;          ///< of a collective: those on the wire (collective.h)
  double message_bytes = 0.0;  ///< of a collective: its message's size
};

/// The number of elements, as a double for cost formulas.
[[nodiscard]] inline double elements_of(const TensorSpec& tensor) {
  return static_cast<double>(tensor.shape.elements());
}
/// Bytes of the elements of tensors, without gaps between strided rows or padding of blocks.
[[nodiscard]] inline double bytes_moved(const TensorSpec& tensor) {
  return elements_of(tensor) * bits_of(tensor.dtype) / 8.0;
}
[[nodiscard]] double bytes_moved(std::span<const TensorSpec> tensors);
[[nodiscard]] double elements_of(std::span<const TensorSpec> tensors);

/// A call with the specs of its tensors.
struct CallSpecs {
  const OpCall& call;
  std::span<const TensorSpec> inputs, outputs;

  /// Throws ProgramError where the call lacks it.
  [[nodiscard]] const TensorSpec& input(std::string_view name) const { return Named<TensorSpec>(call, inputs)[name]; }
  [[nodiscard]] const TensorSpec& output(int index) const { return outputs[static_cast<std::size_t>(index)]; }
  /// The compulsory traffic: every tensor crosses memory once, however the op is computed.
  [[nodiscard]] double bytes() const { return bytes_moved(inputs) + bytes_moved(outputs); }
};

/// What reading one element that shares no cache line with its neighbours costs, in units of an fp64 operation.
inline constexpr double strided_read_flop = 6.0;

/// How an output is judged: `count` units, each a run of `elements` consecutive logical elements that are computed
/// together (an element of a gemm, a row of a norm, a query row of attention).
struct CheckUnits {
  std::int64_t count = 0;
  std::int64_t elements = 1;
  double flop_per_unit = 1.0;  ///< fp64 work of the textbook for one unit, so that samples fit a budget
  /// Units where bugs tend to show (tile edges, borders, first causal rows): checked in every sample.
  std::vector<std::int64_t> landmarks;
};

/// The true value, and how far a correct implementation's result may be from it before its one rounding to the
/// storage type. The checker accepts iff round(value - bound) <= got <= round(value + bound); with a bound of 0 that is
/// one number, and a zero of either sign. (A NaN is accepted for a NaN, whatever its payload.)
struct Expected {
  double value = 0.0;
  double bound = 0.0;
  bool bitwise = false;  ///< a zero must have the sign of round(value) too: the op moves numbers and computes none
};

/// What an op that only moves or casts a number must leave: round(value), bit for bit.
[[nodiscard]] inline Expected moved(double value) { return {value, 0.0, true}; }

/// What an op actually read, in storage type: for updated values the content before the op ran.
struct Operands {
  const OpCall& call;
  std::span<const TensorView> inputs;
  std::span<const TensorSpec> outputs;
  /// What the op wrote to its outputs, for ops of which one output is judged on another (a sum on its summands, which
  /// are judged themselves). Empty where the op has not run: then the textbook uses its own values.
  std::span<const TensorView> written{};
  /// The data are such that sums are exact in any order (Contraction, RevealingData): bounds have no part for them.
  bool exact_sums = false;
  bool sparse = false;  ///< RevealingData::sparse

  /// Throws ProgramError where the call lacks it.
  [[nodiscard]] const TensorView& input(std::string_view name) const { return Named<TensorView>(call, inputs)[name]; }
};

/// An element of an output outside its bound.
struct Mismatch {
  std::int64_t linear = 0;
  double got = 0.0;
};

/// An axis along which an output is a linear map of its operands, element by element: adding up its elements there,
/// each with a factor, gives what the op gives of the operands with theirs added up alike.
struct LinearAxis {
  int output_axis = 0;
  /// The inputs that have this axis, and which of theirs it is.
  std::vector<std::pair<std::size_t, int>> operands;
};

/// What the first output of an op adds up: products of two inputs, element by element along an axis of each. Data can
/// be made on which these sums are exact (harness/parity/exact_data.h).
struct Contraction {
  std::size_t a = 0, b = 1;  ///< inputs
  int a_axis = 0, b_axis = 0;
  std::int64_t extent = 0;   ///< elements along it that one sum takes; an axis may have several times as many (groups)
  std::int64_t repeats = 1;  ///< times that a sum does so: the taps of a filter
  bool ragged = false;       ///< sums take runs of other lengths, from anywhere
  std::size_t inputs = SIZE_MAX;  ///< so many reach the sums, the first output; the others may hold anything
  double factor = 1.0;            ///< of the sum, and of what is added to it, if anything is: alpha and beta
  double c_in_factor = 0.0;
};

/// Inputs on which faults show that usual ones hide.
struct RevealingData {
  struct Input {
    std::size_t index = 0;
    std::function<double(std::int64_t element)> value;  ///< by logical linear index
    std::int64_t period = 0;                            ///< elements after which values repeat; 0: they don't
  };
  std::string_view name;      ///< "an infinite gradient"
  std::vector<Input> inputs;  ///< the others stay as they are
  bool exact_sums = false;    ///< Operands::exact_sums
  /// Few terms of the sums are not 0, and the textbook adds up these alone: everything is judged, at about the cost of
  /// making the data.
  bool sparse = false;
};

class OpDefinition {
 public:
  virtual ~OpDefinition() = default;
  [[nodiscard]] virtual OpKind kind() const = 0;
  [[nodiscard]] virtual Cost cost(const CallSpecs& op) const = 0;
  [[nodiscard]] virtual CheckUnits units(const CallSpecs& op, int output) const = 0;
  /// The rule behind one output's bound, for a reader, with its numbers: "Rule G: 2 u sqrt(768)
  /// max(|C| + Q, 2 S), u = 2^-24", "exact, bitwise". It says what evaluate() computes.
  [[nodiscard]] virtual std::string bound(const CallSpecs& op, int output) const = 0;
  /// Expected values of the wanted units of one output: judged[i * elements + e] is element e of wanted[i].
  /// Thread-safe. `wanted` is sorted ascending.
  virtual void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                        std::span<Expected> judged) const = 0;
  /// Whether NaN throughout an output is the right answer though no input is NaN: a mean over no labels. Where inputs
  /// make no sense (a label outside the classes), no answer is right, and the textbook's NaN proves nothing.
  [[nodiscard]] virtual bool nan_is_right(const Operands& /*operands*/, int /*output*/) const { return false; }
  /// Whether evaluate() uses Operands::written, which must then be the host's.
  [[nodiscard]] virtual bool reads_written(const OpCall& /*call*/) const { return false; }
  /// Groups of outputs that must hold the same bits, whatever the bound allows each of them.
  [[nodiscard]] virtual std::vector<std::vector<int>> identical_outputs(const OpCall& /*call*/) const { return {}; }
  /// For checking a whole output by few sums (harness/parity/projection.h): none, or some of which any may be added up
  /// along, the cheapest first. Outputs that evaluate() needs for this one have the axes too.
  [[nodiscard]] virtual std::vector<LinearAxis> linear_axes(const CallSpecs& /*op*/, int /*output*/) const {
    return {};
  }
  /// None where sums are not all that is rounded to the output's precision, whatever the data are: a factor that is no
  /// power of two.
  [[nodiscard]] virtual std::optional<Contraction> contraction(const CallSpecs& /*op*/) const { return {}; }
  /// For launches of their own beside those of the case.
  [[nodiscard]] virtual std::vector<RevealingData> revealing_data(const CallSpecs& /*op*/) const { return {}; }
  /// A fault that the check of this call is known not to see: "a mean off by ..."; empty where none is.
  [[nodiscard]] virtual std::string unseen(const CallSpecs& /*op*/) const { return {}; }
  /// The matrix product that can be seen through the op, if there is one: for data that show how it is computed.
  [[nodiscard]] virtual std::optional<OpProduct> product(const CallSpecs& /*op*/) const { return {}; }
  /// What the wrong elements of an output have in common, as far as the op knows: "rank 1's contribution is missing, in
  /// chunk 2 of 4 (elements 512 to 767)". `wrong` has at least one element; empty where there is nothing to say.
  [[nodiscard]] virtual std::string explain(const Operands& /*operands*/, int /*output*/,
                                            std::span<const Mismatch> /*wrong*/) const {
    return {};
  }
  /// Appends the ops that compute the gradients of this call's wanted inputs. The default throws ProgramError:
  /// "<kind> has no derivative".
  virtual void derivative(Program& program, const OpCall& call, GradientTape& tape) const;
};

/// Base of the definition of `op`.
template <const OpKind& op>
class DefinitionOf : public OpDefinition {
 public:
  [[nodiscard]] OpKind kind() const final { return op; }
};

/// The definition of an op. Throws ProgramError for a kind that is not in the set.
[[nodiscard]] const OpDefinition& definition(OpKind kind);

/// The one of this name; null where there is none.
[[nodiscard]] const OpDefinition* find_definition(std::string_view name);

/// Every op of the set, in alphabetical order of their kinds.
[[nodiscard]] std::span<const OpDefinition* const> definitions();

/// cost() of an op of a program.
[[nodiscard]] Cost cost_of(const Program& program, const OpCall& call);
/// Sum over the timed ops: what a step must do. Bytes are those of its ops one by one.
[[nodiscard]] Cost cost_of(const Program& program);

/// What <file>_definitions() of each file of the textbook returns.
using Definitions = std::vector<const OpDefinition*>;
/// Of all of these files, as CMakeLists.txt lists them.
[[nodiscard]] std::span<const Definitions> textbooks();

/// One object of each class, for as long as the program runs.
template <class... Ops>
[[nodiscard]] Definitions definitions_of() {
  static const std::tuple<Ops...> held;
  return {&std::get<Ops>(held)...};
}

/// What a derivative rule sees of differentiate(): which gradients are wanted, where they go, and how they add up.
class GradientTape {
 public:
  virtual ~GradientTape() = default;

  /// The gradient that flows into an output of the op; empty where none does (an unused output), and for the loss
  /// itself, whose gradient is one.
  [[nodiscard]] virtual std::optional<ValueId> of(ValueId output) const = 0;
  /// True when the value is the loss that differentiate() started from: its gradient is the constant 1.
  [[nodiscard]] virtual bool is_loss(ValueId output) const = 0;
  /// Whether the gradient of this input is needed.
  [[nodiscard]] virtual bool wanted(ValueId input) const = 0;
  /// A reserved value shaped and typed as `input` (bf16 for 8-bit ones) to write its gradient to. For a part of a
  /// packed storage this is the matching part of the packed gradient. Call at most once per input and rule, then
  /// contribute() it.
  [[nodiscard]] virtual ValueId destination(ValueId input) = 0;
  /// The 8-bit type that products of 8-bit operands read gradients in (Recipe::gradient_operand).
  [[nodiscard]] virtual DType gradient_operand() const = 0;
  /// Adds `gradient` to the gradient of `input`; several contributions are summed.
  virtual void contribute(ValueId input, ValueId gradient) = 0;
  /// "<label of the forward op>.<suffix>", unique.
  [[nodiscard]] virtual std::string label(const OpCall& forward, std::string_view suffix) const = 0;
};

/// The gradient of an output of `call`; empty where none flows. Throws ProgramError when the output is the loss itself:
/// only cross_entropy_forward starts a backward pass by itself, others need a seed gradient.
[[nodiscard]] std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output);

/// Throws ProgramError where a gradient flows into a statistic that a normalization saves or updates: only its backward
/// may read them.
void refuse_gradient_of_statistics(const OpCall& call, const GradientTape& tape);

/// The gradient of an output of a collective, whose backward needs every one of them. Throws ProgramError as above, and
/// naming an output that none flows into.
[[nodiscard]] ValueId required_gradient(const Program& program, const OpCall& call, const GradientTape& tape,
                                        ValueId output);
/// The gradients of all outputs.
[[nodiscard]] std::vector<ValueId> incoming_gradients(const Program& program, const OpCall& call,
                                                      const GradientTape& tape);

// Reading wanted elements: neighbours as one run, a chunk at a time, so that full checks run at the speed of decoding
// and sparse ones read only what they need.

/// out[i] = element offset + wanted[i] of the view. `wanted` is ascending.
void gather(const TensorView& view, std::span<const std::int64_t> wanted, std::int64_t offset, std::span<double> out);

/// Calls consume(first element, values) for all elements of the view, in order, in chunks.
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

/// Elements of an image [n, h, w, channels]: borders, every phase of a small stride and the middle, of the first and of
/// the last image and channel.
[[nodiscard]] std::vector<std::int64_t> image_landmarks(const Shape& shape, std::int64_t stride_h = 1,
                                                        std::int64_t stride_w = 1);

/// Units of one element each. Landmarks: the first and last element, and the ends of the first and last row.
[[nodiscard]] CheckUnits element_units(const Shape& shape, double flop_per_unit);

/// Rows of x as units of `elements` elements each: one of each kind that the norm fills give, and the last, are always
/// judged.
[[nodiscard]] CheckUnits norm_row_units(const Shape& x, std::int64_t elements, double flop_per_element);

}  // namespace gpubench
