#include "tests/reference/cpu/textbook_judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "reference/cpu/cpu_backend.h"
#include "reference/ops/definition.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {
namespace {

bool lies_within(const Expected& judged, DType type, double got) {
  if (std::isnan(judged.value)) return std::isnan(got);
  if (judged.bitwise && std::signbit(got) != std::signbit(judged.value)) return false;
  return got >= round_to(type, judged.value - judged.bound) && got <= round_to(type, judged.value + judged.bound);
}

std::string judge_output(const ProgramRun& run, const Operands& operands, int output, std::int64_t stride) {
  const OpCall& call = operands.call;
  const OpDefinition& op = definition(call.kind);
  std::vector<TensorSpec> inputs;
  for (const TensorView& input : operands.inputs) inputs.push_back(input.spec());
  const CheckUnits units = op.units({call, inputs, operands.outputs}, output);
  std::vector<std::int64_t> wanted;
  for (std::int64_t unit = 0; unit < units.count; unit += stride) wanted.push_back(unit);
  if (units.count > 0 && wanted.back() != units.count - 1) wanted.push_back(units.count - 1);
  std::vector<Expected> judged(wanted.size() * static_cast<std::size_t>(units.elements));
  op.evaluate(operands, output, wanted, judged);

  const TensorSpec& spec = operands.outputs[static_cast<std::size_t>(output)];
  const std::vector<double> got = run.get(call.outputs[static_cast<std::size_t>(output)]);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const auto unit = static_cast<std::int64_t>(i) / units.elements;
    const std::int64_t element =
        wanted[static_cast<std::size_t>(unit)] * units.elements + static_cast<std::int64_t>(i) % units.elements;
    const double value = got[static_cast<std::size_t>(element)];
    if (lies_within(judged[i], spec.dtype, value)) continue;
    return fmt::format("{}[{}] = {}, expected {} +- {}", spec.name, element, value, judged[i].value, judged[i].bound);
  }
  return {};
}

std::string run_and_judge_op(ProgramRun& run, int index, std::int64_t stride) {
  const Program& program = run.program();
  const OpCall& call = program.op(index);
  std::vector<std::vector<std::byte>> before, after;
  for (const ValueId input : call.inputs) before.push_back(run.bytes_of(input));
  std::vector<TensorView> views, written;
  for (std::size_t i = 0; i < before.size(); ++i) views.emplace_back(program.spec(call.inputs[i]), before[i].data());
  const std::vector<TensorSpec> outputs = specs_of(program, call.outputs);

  run.run_op(index);

  for (const ValueId output : call.outputs) after.push_back(run.bytes_of(output));
  for (std::size_t i = 0; i < after.size(); ++i) written.emplace_back(outputs[i], after[i].data());
  for (int output = 0; output < static_cast<int>(outputs.size()); ++output) {
    const std::string fault = judge_output(run, {call, views, outputs, written}, output, stride);
    if (!fault.empty()) return fault;
  }
  return {};
}

}  // namespace

std::string run_and_judge(ProgramRun& run, std::int64_t stride) {
  const Program& program = run.program();
  run.bind();
  std::vector<ValueId> outputs;
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
    const std::string fault = run_and_judge_op(run, op, stride);
    if (!fault.empty()) return fault;
    outputs.insert(outputs.end(), program.op(op).outputs.begin(), program.op(op).outputs.end());
  }
  if (!run.canaries_intact()) return "bytes outside the tensors were overwritten";
  if (std::ranges::any_of(outputs, [&](ValueId id) { return program.value(id).updates.has_value(); })) return {};
  std::vector<std::vector<std::byte>> first;
  for (const ValueId output : outputs) first.push_back(run.bytes_of(output));
  run.run_again();
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (run.bytes_of(outputs[i]) != first[i]) return program.spec(outputs[i]).name + " differs between two runs";
  }
  return {};
}

BackendContract cpu_contract(int threads) {
  const std::shared_ptr<Backend> own = threads == 0 ? nullptr : open_cpu_backend(threads);
  Backend& backend = threads == 0 ? shared_backend() : *own;
  const auto judges = [own, &backend, threads](const Program& program, const Fill& fill, std::int64_t stride) {
    ProgramRun run(backend, program);
    fill(run);
    const std::string fault = run_and_judge(run, stride);
    return fault.empty() || threads == 0 ? fault : fmt::format("threads {}: {}", threads, fault);
  };
  return {backend, {DType::f32, DType::bf16, DType::f16}, judges};
}

}  // namespace gpubench::testing
