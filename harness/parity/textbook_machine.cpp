#include "harness/parity/textbook_machine.h"

#include <numeric>

#include "harness/core/hash.h"
#include "harness/parity/fill.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

// Uniform in [-1, 1).
double uniform(std::uint64_t key, std::uint64_t index) {
  return static_cast<double>(static_cast<std::int64_t>(hash_at(key, index))) * 0x1p-63;
}

std::byte* writable(std::byte* base, const TensorSpec& spec, std::int64_t linear) {
  return base + spec.layout.offset(spec.shape, linear) * static_cast<std::int64_t>(size_of(spec.dtype));
}

}  // namespace

TextbookMachine::TextbookMachine(const Program& program) : program_(program) {
  for (const Storage& storage : program.storages()) memory_.emplace_back(static_cast<std::size_t>(storage.bytes));
}

void TextbookMachine::fill_sources(std::string_view case_key, std::uint64_t seed, const Program& types) {
  for (std::size_t i = 0; i < program_.values().size(); ++i) {
    const Value& value = program_.values()[i];
    if (!value.source || value.part_of) continue;
    const TensorSpec& stored = types.values()[i].spec;
    std::vector<std::byte> bytes(static_cast<std::size_t>(stored.bytes()));
    fill(stored, case_key, seed, bytes);
    const TensorView source(stored, bytes.data());
    std::byte* base = data(value.storage) + value.offset_bytes;
    for (std::int64_t e = 0; e < stored.shape.elements(); ++e)
      store(value.spec.dtype, writable(base, value.spec, e), source[e]);
  }
}

void TextbookMachine::run(std::optional<std::uint64_t> disturb) {
  for (int index = 0; index < static_cast<int>(program_.ops().size()); ++index) run_op(index, disturb);
}

void TextbookMachine::run_op(int index, std::optional<std::uint64_t> disturb) {
  const OpCall& op = program_.op(index);
  const OpDefinition& meaning = definition(op.kind);
  std::vector<TensorView> inputs;
  for (const ValueId id : op.inputs) inputs.push_back(view(id));
  const std::vector<TensorSpec> input_specs = specs_of(program_, op.inputs);
  const std::vector<TensorSpec> output_specs = specs_of(program_, op.outputs);
  // All outputs are evaluated before any is stored: an update overwrites what the other outputs still read.
  std::vector<std::vector<Expected>> results;
  for (int output = 0; output < static_cast<int>(output_specs.size()); ++output) {
    const CheckUnits units = meaning.units({op, input_specs, output_specs}, output);
    std::vector<std::int64_t> all(static_cast<std::size_t>(units.count));
    std::iota(all.begin(), all.end(), 0);
    results.emplace_back(static_cast<std::size_t>(units.count * units.elements));
    meaning.evaluate({op, inputs, output_specs}, output, all, results.back());
  }
  for (std::size_t output = 0; output < results.size(); ++output) {
    const Value& value = program_.value(op.outputs[output]);
    std::byte* base = data(value.storage) + value.offset_bytes;
    const std::uint64_t key = hash(value.spec.name, disturb.value_or(0));
    for (std::size_t e = 0; e < results[output].size(); ++e) {
      const Expected& judged = results[output][e];
      const double moved = disturb ? judged.value + judged.bound * uniform(key, e) : judged.value;
      store(value.spec.dtype, writable(base, value.spec, static_cast<std::int64_t>(e)), moved);
    }
  }
}

TensorView TextbookMachine::view(ValueId id) const {
  const Value& value = program_.value(id);
  return {value.spec, memory_[static_cast<std::size_t>(value.storage.index)].data() + value.offset_bytes};
}

}  // namespace gpubench
