#include "harness/parity/lower_precision.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "harness/parity/compare_elements.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {
namespace {

constexpr std::size_t max_elements = 4096;
constexpr std::int64_t max_copied_bytes = std::int64_t{1} << 30U;
// Correct sums use at least 0.07 of the bound; few elements may show about half of that.
constexpr double min_use = 1.0 / 16.0;
// A truncating store, or a flipped last bit, is off by one and a half units in the last place at most.
constexpr double store_units = 2.0;

std::vector<std::pair<std::string, Math>> arithmetic_below(const Math& declared, DType operand, DType output) {
  std::vector<std::pair<std::string, Math>> below;
  const auto add = [&](const LowerArithmetic& lower, auto change) {
    Math math = declared;
    change(math);
    below.emplace_back(std::string(lower.words), math);
  };
  const bool is_wide = declared.accumulate == DType::f32 || declared.accumulate == DType::f64;
  if (operand == DType::f32 && declared.inputs == Math::Inputs::exact)
    add(lower_arithmetic::tf32, [](Math& math) { math.inputs = Math::Inputs::tf32; });
  if (bits_of(operand) == 8 && !declared.fast_accumulation)
    add(lower_arithmetic::fast_f8, [](Math& math) { math.fast_accumulation = true; });
  if (bits_of(output) == 16 && !declared.split_k_in_output)
    add(lower_arithmetic::split_k_in_output, [](Math& math) { math.split_k_in_output = true; });
  if (is_wide) {
    add(lower_arithmetic::f16_sums, [](Math& math) { math.accumulate = DType::f16; });
    add(lower_arithmetic::bf16_sums, [](Math& math) { math.accumulate = DType::bf16; });
  }
  return below;
}

std::vector<Expected> expected_of(const Operands& operands, int output, std::span<const Mismatch> wrong) {
  std::vector<std::int64_t> elements;
  for (const Mismatch& one : wrong) elements.push_back(one.linear);
  return expected_elements(operands, output, elements);
}

bool looks_like(const Operands& operands, int output, std::span<const Mismatch> wrong, double least) {
  const std::vector<Expected> expected = expected_of(operands, output, wrong);
  const DType type = operands.outputs[static_cast<std::size_t>(output)].dtype;
  const double max_of_a_store = store_units * 2.0 * unit_roundoff(type);
  double largest = 0.0;
  bool beyond_the_store = false;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const double use = error_over_bound(expected[i], type, wrong[i].got);
    if (!(use <= 1.0)) return false;
    largest = std::max(largest, use);
    beyond_the_store =
        beyond_the_store || std::fabs(wrong[i].got - expected[i].value) > max_of_a_store * std::fabs(expected[i].value);
  }
  return beyond_the_store && largest >= least;
}

// A wrong factor: all elements are right times one number, within twice their bound and twice the rounding of the
// store, because the number is fitted to them.
bool is_scaled(const Operands& operands, int output, std::span<const Mismatch> wrong) {
  const std::vector<Expected> expected = expected_of(operands, output, wrong);
  double products = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    products += wrong[i].got * expected[i].value;
    squares += expected[i].value * expected[i].value;
  }
  const double store = 2.0 * unit_roundoff(operands.outputs[static_cast<std::size_t>(output)].dtype);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const double off = std::fabs(wrong[i].got - products / squares * expected[i].value);
    if (!(off <= 2.0 * expected[i].bound + store * std::fabs(wrong[i].got))) return false;
  }
  return true;
}

std::vector<HostTensor> in_bf16(std::span<const TensorView> inputs) {
  std::vector<HostTensor> all(inputs.begin(), inputs.end());
  for (HostTensor& tensor : all) {
    if (tensor.spec.dtype != DType::f32) continue;
    for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, round_to(DType::bf16, tensor.get(e)));
  }
  return all;
}

bool looks_like_bf16_inputs(const Operands& operands, int output, std::span<const Mismatch> wrong) {
  std::int64_t bytes = 0;
  for (const TensorView& input : operands.inputs) bytes += input.spec().bytes();
  if (bytes > max_copied_bytes || operands.call.math.inputs != Math::Inputs::exact) return false;
  const std::vector<HostTensor> cut = in_bf16(operands.inputs);
  return looks_like(replaced(operands, operands.call, views_of(cut)), output, wrong, 0.0);
}

}  // namespace

Program with_arithmetic(const Program& program, std::span<const std::string> names) {
  Program lower(program.mesh());
  (void)copy_values(program, lower, [](TensorSpec&) {});  // keeps the ids
  for (OpCall op : program.ops()) {
    const std::vector<TensorSpec> inputs = specs_of(program, op.inputs), outputs = specs_of(program, op.outputs);
    const bool is_product = definition(op.kind).product({op, inputs, outputs}).has_value();
    const auto is = [](const std::string& name, const LowerArithmetic& one) { return name == one.name; };
    for (const std::string& name : names) {
      using Inputs = Math::Inputs;
      const Inputs wanted = is(name, lower_arithmetic::tf32)       ? Inputs::tf32
                            : is(name, lower_arithmetic::bf16)     ? Inputs::bf16
                            : is(name, lower_arithmetic::two_bf16) ? Inputs::two_bf16
                                                                   : Inputs::exact;
      if (wanted != Inputs::exact && op.math.inputs == Inputs::exact) op.math.inputs = wanted;
      if (!is_product) continue;
      if (is(name, lower_arithmetic::fast_f8)) op.math.fast_accumulation = true;
      if (is(name, lower_arithmetic::split_k_in_output)) op.math.split_k_in_output = true;
      if (is(name, lower_arithmetic::f16_sums)) op.math.accumulate = DType::f16;
      if (is(name, lower_arithmetic::bf16_sums)) op.math.accumulate = DType::bf16;
    }
    lower.begin(op.phase);
    lower.append(std::move(op));
  }
  lower.begin(Phase::timed);
  return lower;
}

std::string lower_precision(const Operands& operands, int output, std::span<const Mismatch> wrong) {
  const std::vector<TensorSpec> inputs = specs_of(operands.inputs);
  if (definition(operands.call.kind).linear_axes({operands.call, inputs, operands.outputs}, output).empty()) return {};
  wrong = wrong.first(std::min(wrong.size(), max_elements));
  if (is_scaled(operands, output, wrong)) return {};
  const DType type = operands.outputs[static_cast<std::size_t>(output)].dtype;
  if (operands.inputs[0].dtype() == DType::f32 && looks_like_bf16_inputs(operands, output, wrong))
    return std::string(lower_arithmetic::bf16.words);
  for (const auto& [name, math] : arithmetic_below(operands.call.math, operands.inputs[0].dtype(), type)) {
    OpCall call = operands.call;
    call.math = math;
    if (looks_like(replaced(operands, call, operands.inputs), output, wrong, min_use)) return name;
  }
  return {};
}

}  // namespace gpubench
