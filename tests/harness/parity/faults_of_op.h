// The catalogue's faults in the one op of a program whose sources are filled as a run would.
#pragma once

#include <functional>
#include <vector>

#include "harness/parity/end_to_end.h"
#include "harness/parity/fault_catalogue.h"

namespace gpubench {

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
