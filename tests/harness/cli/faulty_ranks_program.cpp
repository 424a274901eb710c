// gpubench-faulty-ranks: the program on CPU ranks, one of which fails when bf16 is reduced. GPUBENCH_RANK_FAULT: throw,
// memory, hang or kill.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "harness/cli/run_cli.h"
#include "reference/cpu/cpu_backend.h"
#include "suites/suites.h"
#include "tests/harness/run/faulty_ranks.h"

namespace {

void fail() {
  const char* fault = std::getenv("GPUBENCH_RANK_FAULT");
  const std::string how = fault == nullptr ? "" : fault;
  if (how == "throw") throw std::runtime_error("the link is down");
  if (how == "memory") throw std::bad_alloc();
  if (how == "kill") ::raise(SIGKILL);
  while (how == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gpubench;
  BackendEntry cpu;
  cpu.name = "cpu";
  cpu.open = [](const OpenRequest&) { return open_cpu_backend(); };
  cpu.precisions = [](int /*no GPU*/) { return std::vector<std::string>{"f32", "bf16"}; };
  cpu.open_ranks = [](const RankRequest& what) {
    RankSet set = open_cpu_ranks(what.ranks);
    set.communicator = testing::damaged(std::move(set.communicator), what.ranks,
                                        [](int rank, std::span<const Tensor> tensors, std::size_t /*inputs*/) {
                                          if (rank == 1 && tensors[0].spec.dtype == DType::bf16) fail();
                                        });
    return set;
  };
  return run_program(argc, argv, all_suites(), {std::move(cpu)}, "");
}
