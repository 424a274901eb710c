#include "harness/parity/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "harness/core/error.h"
#include "harness/parity/rounding.h"
#include "reference/ops/builders.h"
#include "reference/ops/collective.h"

namespace gpubench {
namespace {

constexpr double constant_off_by = 1.0 + 0x1p-6;  ///< as 0.8 for 0.7979 (GELU), or 0.045 for 0.044715
/// Name prefixes of whole numbers that the textbook accepts for any shape.
constexpr std::array<std::string_view, 4> geometry{"pad_", "stride_", "dilation_", "window_"};

bool has_any_shape(std::string_view attribute) {
  return std::ranges::any_of(geometry, [&](std::string_view prefix) { return attribute.starts_with(prefix); });
}

void set_each(HostTensor& tensor, const std::function<double(double)>& value) {
  for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, value(tensor.get(e)));
}

class Collector {
 public:
  Collector(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs)
      : call_(call), inputs_(inputs), outputs_(outputs) {}

  std::vector<WrongCall> all() {
    for (const std::size_t i : some_operands(inputs_.size())) tamper(i);
    change_attributes();
    return std::move(calls_);
  }

 private:
  void on_input(CallFault fault, std::size_t i, const std::string& detail, std::function<void(HostTensor&)> change) {
    calls_.push_back({fault, fmt::format("{}{}'{}'", detail, detail.empty() ? "" : " of ", inputs_[i].name), call_, i,
                      std::move(change)});
  }

  void tamper(std::size_t i) {
    const TensorSpec& input = inputs_[i];
    const std::int64_t count = input.shape.elements();
    if (count == 0) return;
    if (!is_float(input.dtype)) {
      if (count > 1)
        on_input(CallFault::wrong_index, i, "", [last = count - 1](HostTensor& t) { t.set(last, t.get(0)); });
      return;
    }
    on_input(CallFault::operand_left_out, i, "", [](HostTensor& t) { set_each(t, [](double) { return 0.0; }); });
    if (count == 1) {
      return on_input(CallFault::wrong_constant, i, "", [](HostTensor& t) { t.set(0, t.get(0) * constant_off_by); });
    }
    on_input(CallFault::one_sign, i, "", [=](HostTensor& t) { t.set(count / 2, -t.get(count / 2)); });
    for (int axis = 0; axis < input.shape.rank(); ++axis) along_axis(i, axis);
    narrow(i);
  }

  void along_axis(std::size_t i, int axis) {
    const Shape& shape = inputs_[i].shape;
    const AxisView along(shape, axis);
    if (along.extent < 2) return;
    const std::string name = fmt::format("axis {}", axis);
    on_input(CallFault::end_left_out, i, name,
             [=](HostTensor& t) { along.each(along.extent - 1, [&](std::int64_t e) { t.set(e, 0.0); }); });
    on_input(CallFault::end_doubled, i, name,
             [=](HostTensor& t) { along.each(along.extent - 1, [&](std::int64_t e) { t.set(e, 2.0 * t.get(e)); }); });
    on_input(CallFault::ends_swapped, i, name, [=](HostTensor& t) {
      along.each(along.extent - 1, [&](std::int64_t e) {
        const double held = t.get(e);
        t.set(e, t.get(e - along.inner));
        t.set(e - along.inner, held);
      });
    });
    on_input(CallFault::operand_shifted, i, name,
             [=](HostTensor& t) { read_from(t, [=](std::int64_t e) { return along.shifted(e, 1); }); });
    on_input(CallFault::axis_reversed, i, name,
             [=](HostTensor& t) { read_from(t, [=](std::int64_t e) { return along.reversed(e); }); });
    for (int other = axis + 1; other < shape.rank(); ++other) {
      if (shape[other] > 1)
        on_input(CallFault::axes_swapped, i, fmt::format("axes {} and {}", axis, other),
                 [=](HostTensor& t) { swap_axes(t, axis, other); });
    }
  }

  void narrow(std::size_t i) {
    if (inputs_[i].dtype != DType::f32 || call_.math.inputs != Math::Inputs::exact) return;
    for (const auto& [name, bits] : {std::pair("tf32", 11), std::pair("two bf16", 16), std::pair("bf16", 8)})
      on_input(CallFault::operand_narrower, i, name,
               [bits = bits](HostTensor& t) { set_each(t, [bits](double v) { return with_bits(bits, v); }); });
  }

  void with_attribute(CallFault fault, const Attribute& attribute, const AttributeValue& value) {
    WrongCall wrong{fault, {}, call_};
    wrong.call.attributes.set(attribute.name, value);
    if (!(has_any_shape(attribute.name) ? has_operands(wrong.call) : is_taken(wrong.call))) return;
    const bool* on = std::get_if<bool>(&value);
    wrong.detail = on != nullptr
                       ? fmt::format("{} {}", attribute.name, *on ? "on" : "off")
                       : fmt::format("{} {} for {}", attribute.name, value_text(value), value_text(attribute.value));
    calls_.push_back(std::move(wrong));
  }

  void change_attributes() {
    for (const Attribute& attribute : call_.attributes.list()) {
      if (const bool* on = std::get_if<bool>(&attribute.value)) {
        with_attribute(CallFault::wrong_switch, attribute, !*on);
      } else if (const double* number = std::get_if<double>(&attribute.value); number != nullptr && *number != 0.0) {
        const bool regularizes = attribute.name == "epsilon";
        with_attribute(regularizes ? CallFault::wrong_epsilon : CallFault::wrong_constant, attribute,
                       *number * (regularizes ? 10.0 : constant_off_by));
      } else if (const auto* word = std::get_if<std::string_view>(&attribute.value)) {
        for (const std::string_view other : attribute.words) {
          if (other != *word) with_attribute(CallFault::wrong_switch, attribute, other);
        }
      } else if (const auto* whole = std::get_if<std::int64_t>(&attribute.value);
                 whole != nullptr && (attribute.name == "window" || has_any_shape(attribute.name))) {
        with_attribute(CallFault::wrong_geometry, attribute, *whole + 1);
      }
    }
  }

  [[nodiscard]] bool has_operands(const OpCall& call) const {
    try {
      expect_operands(call.kind, call.kind.inputs, call.attributes, inputs_.size(), "inputs", call.label);
      expect_operands(call.kind, call.kind.outputs, call.attributes, outputs_.size(), "outputs", call.label);
      return true;
    } catch (const ProgramError&) {
      return false;
    }
  }

  /// Tests the call with the op's builder: the textbook relies on its refusals.
  [[nodiscard]] bool is_taken(const OpCall& call) const {
    if (is_collective(call.kind)) return has_operands(call);
    try {
      Program program;
      OpCall made = call;
      made.inputs.clear();
      for (const TensorSpec& input : inputs_) made.inputs.push_back(program.add(input));
      append_call(program, made, outputs_);
      return true;
    } catch (const ProgramError&) {
      return false;
    }
  }

  const OpCall& call_;
  std::span<const TensorSpec> inputs_, outputs_;
  std::vector<WrongCall> calls_;
};

}  // namespace

std::vector<WrongCall> wrong_calls(const OpCall& call, std::span<const TensorSpec> inputs,
                                   std::span<const TensorSpec> outputs) {
  return Collector(call, inputs, outputs).all();
}

std::int64_t swapped_place(const Shape& shape, int first, int second, std::int64_t linear) {
  std::int64_t place = 0, stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int other = axis == first ? second : axis == second ? first : axis;
    std::int64_t inner = 1;
    for (int i = other + 1; i < shape.rank(); ++i) inner *= shape[i];
    place += linear / inner % shape[other] * stride;
    stride *= shape[other];
  }
  return place;
}

std::int64_t written_to(const Shape& shape, int first, int second, std::int64_t place) {
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis)
    extents.push_back(shape[axis == first ? second : axis == second ? first : axis]);
  return swapped_place(Shape(extents), first, second, place);
}

void swap_axes(HostTensor& tensor, int first, int second) {
  read_from(tensor, [&, shape = tensor.spec.shape](std::int64_t e) { return swapped_place(shape, first, second, e); });
}

}  // namespace gpubench
