// Every op's builder under one signature, for calls given as data (operand names, attributes, tensors), and the mapping
// of such a call to its builder's parameters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/dropout.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/rotary.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench {

/// Appends a call by its op's builder, with the kind, attributes, math, inputs (in the op's order) and label of `call`.
/// `outputs`: the required specs; they also determine what inputs leave open (image of a convolution's gradient, rows
/// of a table's gradient, type of a product). Returns the appended call. Throws ProgramError if the builder refuses an
/// input or attribute, if attributes do not fit the operands, if an output differs, and for collectives.
const OpCall& append_call(Program& program, const OpCall& call, std::span<const TensorSpec> outputs);

struct BuilderArguments {
  Program& program;
  const OpCall& call;
  std::span<const TensorSpec> outputs;

  template <class T>
  [[nodiscard]] const T& attributes() const {
    return call.attributes.as<T>();
  }
  [[nodiscard]] ValueId in(std::string_view name, std::size_t i = 0) const { return call.input(name, i); }
  [[nodiscard]] std::optional<ValueId> optional(std::string_view name, std::size_t i = 0) const {
    const ValueId* const found = Named<ValueId>(call, call.inputs).find(name, i);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  [[nodiscard]] const TensorSpec& out(std::size_t index) const {
    if (index < outputs.size()) return outputs[index];
    throw ProgramError(std::string(call.kind.name) + ": " + std::to_string(outputs.size()) +
                       " outputs; expected at least " + std::to_string(index + 1));
  }
  /// Reserves an output as its spec describes it.
  [[nodiscard]] ValueId into(std::size_t index) const {
    TensorSpec spec = out(index);
    spec.name = program.unique_name(spec.name);
    return program.reserve(std::move(spec));
  }
  /// The first output's shape. Throws ProgramError unless it has this many axes.
  [[nodiscard]] const Shape& shape_of_output(int rank, std::string_view expected) const {
    expect_axes(call.kind, out(0), rank, expected);
    return out(0).shape;
  }
};

template <class T>
std::vector<T> parameters_of(const BuilderArguments& a) {
  std::vector<T> parameters;
  for (std::size_t i = 0; a.optional("w", i); ++i) {
    if constexpr (std::is_same_v<T, AdamWTensor>) {
      parameters.push_back({a.in("w", i), a.in("g", i), a.in("m", i), a.in("v", i), a.optional("copy", i)});
    } else {
      parameters.push_back({a.in("w", i), a.in("g", i), a.in("m", i), a.optional("copy", i)});
    }
  }
  return parameters;
}

template <class T>
inline constexpr bool is_place_of_outputs = std::is_same_v<T, AttentionGradients>;
template <class T>
inline constexpr bool is_place_of_outputs<std::optional<T>> = true;

/// Maps a builder's parameters to a call. An operand takes the next input, an optional one only if that input is
/// optional, a list all remaining ones. Types and layouts are the first output's; extents are its height and width.
/// `to_outputs`: operands after the last input are outputs, reserved by their specs.
class NextParameter {
 public:
  NextParameter(const BuilderArguments& arguments, bool to_outputs) : arguments_(arguments), to_outputs_(to_outputs) {}

  template <class Parameter>
  [[nodiscard]] auto next() {
    using Type = std::remove_cvref_t<Parameter>;
    const std::vector<ValueId>& inputs = arguments_.call.inputs;
    if constexpr (std::is_same_v<Type, Math>) {
      return arguments_.call.math;
    } else if constexpr (std::is_same_v<Type, std::string>) {
      return arguments_.call.label;
    } else if constexpr (std::is_same_v<Type, ValueId>) {
      return take();
    } else if constexpr (std::is_same_v<Type, AttentionForward> || std::is_same_v<Type, RotaryTables> ||
                         std::is_same_v<Type, MaskSource>) {
      return Type{take(), take()};
    } else if constexpr (std::is_same_v<Type, BatchNormChannels>) {
      return Type{take(), take(), take(), take()};
    } else if constexpr (std::is_same_v<Type, AttentionOptions>) {
      return Type{arguments_.optional("sinks"), arguments_.optional("documents")};
    } else if constexpr (std::is_same_v<Type, DType>) {
      return arguments_.out(0).dtype;
    } else if constexpr (std::is_same_v<Type, Layout>) {
      return arguments_.out(0).layout;
    } else if constexpr (std::is_same_v<Type, Memory>) {
      return arguments_.out(0).placement.memory;
    } else if constexpr (std::is_same_v<Type, std::int64_t>) {
      return arguments_.shape_of_output(4, "[n, h, w, c]")[++extents_];
    } else if constexpr (std::is_same_v<Type, std::optional<ValueId>>) {
      const bool is_given = next_ < inputs.size() ? is_optional(next_) : to_outputs_;
      return is_given ? Type(take()) : Type();
    } else if constexpr (std::is_same_v<Type, std::span<const ValueId>>) {
      return Type(inputs).subspan(std::exchange(next_, inputs.size()));
    } else if constexpr (std::is_same_v<Type, std::span<const AdamWTensor>>) {
      return parameters_of<AdamWTensor>(arguments_);
    } else if constexpr (std::is_same_v<Type, std::span<const SgdTensor>>) {
      return parameters_of<SgdTensor>(arguments_);
    } else if constexpr (AttributeStruct<Type>) {
      return arguments_.attributes<Type>();
    } else {
      static_assert(is_place_of_outputs<Type>, "a parameter that no part of a call stands for");
      return Type();
    }
  }

 private:
  ValueId take() {
    const std::vector<ValueId>& inputs = arguments_.call.inputs;
    if (next_ < inputs.size()) return inputs[next_++];
    if (to_outputs_) return arguments_.into(outputs_++);
    throw ProgramError(std::string(arguments_.call.kind.name) + ": " + std::to_string(inputs.size()) +
                       " inputs; expected more");
  }

  [[nodiscard]] bool is_optional(std::size_t input) const {
    const OpCall& call = arguments_.call;
    const std::string name = operand_names(call.kind.inputs, call.attributes, call.inputs.size())[input].name;
    const std::vector<DeclaredOperand> declared = declared_operands(call.kind.inputs);
    return std::ranges::find(declared, name, &DeclaredOperand::name)->optional;
  }

  const BuilderArguments& arguments_;
  bool to_outputs_;
  std::size_t next_ = 0, outputs_ = 0;
  int extents_ = 0;
};

template <class Result, class... Parameters>
void call_in_turn(Result (*builder)(Program&, Parameters...), const BuilderArguments& arguments, bool to_outputs) {
  NextParameter parameter(arguments, to_outputs);
  std::apply([&](auto&&... given) { builder(arguments.program, std::forward<decltype(given)>(given)...); },
             std::tuple<decltype(parameter.template next<Parameters>())...>{parameter.template next<Parameters>()...});
}

/// A builder whose parameters are the op's inputs in order; with `to_outputs`, then its outputs.
template <auto function, bool to_outputs = false>
constexpr auto in_turn = [](const BuilderArguments& a) { call_in_turn(function, a, to_outputs); };

struct Builder {
  OpKind kind;
  void (*append)(const BuilderArguments&);
};

using Builders = std::vector<Builder>;
/// All op files, as listed in CMakeLists.txt.
[[nodiscard]] std::span<const Builders> builder_files();

}  // namespace gpubench
