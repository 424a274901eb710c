#pragma once

#include <functional>
#include <vector>

#include "harness/core/program.h"
#include "harness/parity/end_to_end.h"
#include "harness/parity/fault_catalogue.h"
#include "harness/parity/fill.h"
#include "harness/parity/judge.h"

namespace gpubench {

class JudgedProgram {
 public:
  explicit JudgedProgram(Program program, std::uint64_t seed = 42) : program_(std::move(program)) {
    for (const Storage& storage : program_.storages()) memory_.emplace_back(static_cast<std::size_t>(storage.bytes));
    for (const Value& value : program_.values()) {
      if (value.part_of || value.updates) continue;
      std::vector<std::byte>& bytes = memory_[static_cast<std::size_t>(value.storage.index)];
      const std::int64_t elements = value.spec.layout.span_elements(value.spec.shape);
      if (value.source)
        fill(value.spec, "test/case", seed, bytes);
      else
        for (std::int64_t i = 0; i < elements; ++i) store_poison(value.spec.dtype, bytes.data(), i);
    }
  }

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] TensorView view(ValueId id) const { return {program_.spec(id), address(id)}; }
  [[nodiscard]] double get(ValueId id, std::int64_t linear) const { return view(id)[linear]; }
  void set(ValueId id, std::int64_t linear, double value) {
    const TensorSpec& spec = program_.spec(id);
    store(spec.dtype, address(id), spec.layout.offset(spec.shape, linear), value);
  }
  void poison(ValueId id, std::int64_t linear) {
    const TensorSpec& spec = program_.spec(id);
    store_poison(spec.dtype, address(id), spec.layout.offset(spec.shape, linear));
  }
  [[nodiscard]] std::byte* element(ValueId id, std::int64_t linear) {
    const TensorSpec& spec = program_.spec(id);
    return address(id) + spec.layout.offset(spec.shape, linear) * static_cast<std::int64_t>(size_of(spec.dtype));
  }

  [[nodiscard]] OpParity judged(const JudgePolicy& policy = {}, int op = 0, std::string_view phase = "check") const {
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    for (const ValueId id : program_.op(op).inputs) inputs.push_back(view(id));
    for (const ValueId id : program_.op(op).outputs) outputs.push_back(view(id));
    return judge(program_, op, {inputs, outputs}, policy, phase);
  }

 private:
  [[nodiscard]] std::byte* address(ValueId id) const {
    const Value& value = program_.value(id);
    return const_cast<std::byte*>(memory_[static_cast<std::size_t>(value.storage.index)].data()) + value.offset_bytes;
  }

  Program program_;
  std::vector<std::vector<std::byte>> memory_;
};

inline FaultReport faults_of_op(const Program& program, const std::function<void()>& alive = {}) {
  TextbookMachine machine(program);
  machine.fill_sources("test/case", 42, program);
  std::vector<TensorView> inputs, outputs;
  for (const ValueId id : program.op(0).inputs) inputs.push_back(machine.view(id));
  machine.run();
  for (const ValueId id : program.op(0).outputs) outputs.push_back(machine.view(id));
  return inject_faults(program, 0, {inputs, outputs}, {CheckMode::full, 1e6, 7, 2}, alive);
}

}  // namespace gpubench
