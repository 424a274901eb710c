#include "tests/reference/cuda/emulated_judge.h"

#include "tests/reference/backend_contract.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulation/machine.h"

namespace gpubench::testing {
namespace {

using Order = cuda::emulation::Schedule::Order;

struct NamedSchedule {
  const char* name;
  cuda::emulation::Schedule schedule;
};

constexpr NamedSchedule schedules[] = {{"forward", {Order::forward}},
                                       {"reverse", {Order::reverse}},
                                       {"random, seed 1", {Order::random, 1}},
                                       {"random, seed 2, 2 blocks", {Order::random, 2, 2}}};

std::vector<std::vector<std::byte>> results_of(const ProgramRun& run) {
  std::vector<std::vector<std::byte>> results;
  for (const OpCall& call : run.program().ops()) {
    for (const ValueId output : call.outputs) results.push_back(run.bytes_of(output));
  }
  return results;
}

}  // namespace

std::string run_in_every_order(const Program& program, const std::function<void(ProgramRun&)>& fill,
                               const EmulatedRun& how) {
  const std::unique_ptr<Backend> backend =
      open_emulated_backend({how.multiprocessors, how.deterministic, how.pinned, how.compute_capability});
  std::vector<std::vector<std::byte>> expected;
  for (const NamedSchedule& schedule : schedules) {
    cuda::emulation::set_schedule(schedule.schedule);
    ProgramRun run(*backend, program);
    fill(run);
    std::string fault;
    try {
      if (expected.empty()) {
        fault = run_and_judge(run, how.stride);
        expected = results_of(run);
      } else {
        run.run();
        if (results_of(run) != expected) fault = "the bits differ from those of forward order";
      }
    } catch (const cuda::emulation::Fault& thrown) {
      fault = thrown.what();
    }
    cuda::emulation::set_schedule({});
    if (!fault.empty()) return std::string(schedule.name) + ": " + fault;
  }
  return {};
}

const BackendContract& emulated_contract() {
  static const std::unique_ptr<Backend> backend = open_emulated_backend();
  static const BackendContract contract{*backend,
                                        {DType::f64, DType::f32, DType::f16, DType::bf16},
                                        [](const Program& program, const Fill& fill, std::int64_t stride) {
                                          return run_in_every_order(program, fill, EmulatedRun{stride});
                                        }};
  return contract;
}

}  // namespace gpubench::testing
