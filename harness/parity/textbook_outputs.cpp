#include "harness/parity/textbook_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "harness/core/hash.h"
#include "harness/parity/on_threads.h"

namespace gpubench {
namespace {

// Uniform in [-1, 1): a signed 64-bit number over 2^63.
double uniform(std::uint64_t key, std::uint64_t index) {
  return static_cast<double>(static_cast<std::int64_t>(hash_at(key, index))) * 0x1p-63;  // exact
}

}  // namespace

HostTensor::HostTensor(const TensorSpec& like) : spec(like) {
  spec.layout = Layout::row_major(spec.shape);
  bytes.resize(static_cast<std::size_t>(spec.bytes()));
}

HostTensor::HostTensor(const TensorView& other) : HostTensor(other.spec()) {
  other.read_bits(0, elements(), bytes.data());
}

void read_from(HostTensor& tensor, const std::function<std::int64_t(std::int64_t)>& place) {
  const HostTensor right = tensor;
  for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, right.get(place(e)));
}

void fill(HostTensor& tensor, const RevealingData::Input& input) {
  const DType type = tensor.spec.dtype;
  const std::int64_t elements = tensor.elements();
  const bool repeats = input.period > 0 && input.period * bits_of(type) % 8 == 0;
  const std::int64_t drawn = repeats ? std::min(input.period, elements) : elements;
  in_parts(drawn, 1, bits_of(type), [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t e = first; e < end; ++e) tensor.set(e, input.value(e));
  });
  // Each copy doubles the filled part, so that it stays a multiple of the period.
  for (auto done = static_cast<std::size_t>(bytes_of(type, drawn)); done < tensor.bytes.size();) {
    const std::size_t next = std::min(done, tensor.bytes.size() - done);
    std::memcpy(tensor.bytes.data() + done, tensor.bytes.data(), next);
    done += next;
  }
}

std::vector<std::size_t> some_operands(std::size_t count) {
  constexpr std::size_t most = 8;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < most || i + 1 == count) all.push_back(i);
  }
  return all;
}

std::vector<TensorView> views_of(std::span<const HostTensor> tensors) {
  std::vector<TensorView> views;
  for (const HostTensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

std::vector<TensorSpec> specs_of(std::span<const TensorView> tensors) {
  std::vector<TensorSpec> specs;
  for (const TensorView& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

std::vector<TensorSpec> specs_of(std::span<const HostTensor> tensors) {
  std::vector<TensorSpec> specs;
  for (const HostTensor& tensor : tensors) specs.push_back(tensor.spec);
  return specs;
}

std::vector<double> values_of(const TensorView& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.shape().elements()));
  tensor.read(0, values);
  return values;
}

CheckUnits units_of(const Operands& operands, int output) {
  const std::vector<TensorSpec> inputs = specs_of(operands.inputs);
  return definition(operands.call.kind).units({operands.call, inputs, operands.outputs}, output);
}

double textbook_flop(const Program& program, const OpCall& call) {
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs);
  const std::vector<TensorSpec> outputs = specs_of(program, call.outputs);
  double flop = 0.0;
  for (int output = 0; output < static_cast<int>(outputs.size()); ++output) {
    const CheckUnits units = definition(call.kind).units({call, inputs, outputs}, output);
    flop += static_cast<double>(units.count) * units.flop_per_unit;
  }
  return flop;
}

std::vector<Expected> expected_elements(const Operands& operands, int output, std::span<const std::int64_t> elements) {
  const CheckUnits units = units_of(operands, output);
  std::vector<std::int64_t> wanted;
  for (const std::int64_t element : elements) wanted.push_back(element / units.elements);
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<Expected> of_units(wanted.size() * static_cast<std::size_t>(units.elements));
  definition(operands.call.kind).evaluate(operands, output, wanted, of_units);
  std::vector<Expected> expected;
  for (const std::int64_t element : elements) {
    const auto unit = std::ranges::lower_bound(wanted, element / units.elements) - wanted.begin();
    expected.push_back(of_units[static_cast<std::size_t>(unit * units.elements + element % units.elements)]);
  }
  return expected;
}

std::vector<Expected> expected_elsewhere(const Operands& operands, int output, std::span<const std::int64_t> elements,
                                         const std::function<std::int64_t(std::int64_t)>& place) {
  std::vector<std::int64_t> places(elements.begin(), elements.end());
  for (std::int64_t& e : places) e = place(e);
  return expected_elements(operands, output, places);
}

std::vector<Expected> expected_output(const Operands& operands, int output) {
  const CheckUnits units = units_of(operands, output);
  std::vector<std::int64_t> all(static_cast<std::size_t>(units.count));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Expected> expected(static_cast<std::size_t>(units.count * units.elements));
  definition(operands.call.kind).evaluate(operands, output, all, expected);
  return expected;
}

std::vector<HostTensor> textbook_outputs(const Operands& operands, std::optional<Disturbance> disturb) {
  std::vector<HostTensor> outputs;
  for (int output = 0; output < static_cast<int>(operands.outputs.size()); ++output) {
    const std::vector<Expected> expected = expected_output(operands, output);
    HostTensor& tensor = outputs.emplace_back(operands.outputs[static_cast<std::size_t>(output)]);
    const std::uint64_t key = hash(tensor.spec.name, disturb ? disturb->seed : 0);
    for (std::size_t e = 0; e < expected.size(); ++e) {
      const double moved =
          disturb ? expected[e].value + disturb->most * expected[e].bound * uniform(key, e) : expected[e].value;
      tensor.set(static_cast<std::int64_t>(e), moved);
    }
  }
  if (!operands.written.empty() || !definition(operands.call.kind).reads_written(operands.call)) return outputs;
  return textbook_outputs({operands.call, operands.inputs, operands.outputs, views_of(outputs)}, disturb);
}

}  // namespace gpubench
