// gpubench-faulty-processes: the program in several processes, the second of which fails at its first op.
// FAULTY_PROCESS: throw, memory, hang, kill, abort, stop, build, library, device; "unjoined" stops before MPI_Init,
// "joined" after it.
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "harness/cli/environment.h"
#include "harness/cli/run_cli.h"
#include "harness/core/error.h"
#include "harness/run/forwarding_backend.h"
#include "reference/cpu/cpu_backend.h"
#include "suites/suites.h"
#include "tests/harness/run/faulty_ranks.h"

namespace gpubench {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void fail(const std::string& how) {
  if (how == "throw") throw std::runtime_error("the link is down");
  if (how == "memory") throw std::bad_alloc();
  if (how == "kill") ::raise(SIGKILL);
  if (how == "abort") std::abort();
  if (how == "stop") ::raise(SIGSTOP);
  while (how == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
}

class OtherLibrary final : public ForwardingBackend {
 public:
  explicit OtherLibrary(std::unique_ptr<Backend> inner)
      : ForwardingBackend(*inner, nullptr), held_(std::move(inner)), info_(held_->device()) {
    info_.libraries.front().second = "1.0.0";
  }
  [[nodiscard]] const DeviceInfo& device() const override { return info_; }

 private:
  std::unique_ptr<Backend> held_;
  DeviceInfo info_;
};

std::unique_ptr<Backend> with_fault(std::unique_ptr<Backend> backend, const std::string& how) {
  if (how == "device") throw BackendError("no device today");
  if (how == "library") return std::make_unique<OtherLibrary>(std::move(backend));
  return testing::interrupted(std::move(backend), [how](const std::string&) { fail(how); });
}

// As backends do to connect their library's peers.
void exchange_an_id(Processes& processes, int ranks) {
  std::array<std::byte, 128> id{};
  if (processes.rank() == 0) std::ranges::fill(id, std::byte{42});
  processes.broadcast(RankGroup::first(ranks), id);
  for (const std::byte byte : id) {
    if (byte != std::byte{42}) throw BackendError("the id did not arrive");
  }
}

}  // namespace
}  // namespace gpubench

int main(int argc, char** argv) {
  using namespace gpubench;
  const std::string how = launcher_place(variable).rank == 1 ? variable("FAULTY_PROCESS") : "";
  BackendEntry cpu;
  cpu.name = "cpu";
  cpu.open = [](const OpenRequest&) { return open_cpu_backend(); };
  cpu.precisions = [](int /*no GPU*/) { return std::vector<std::string>{"f32"}; };
  cpu.open_ranks = [](const RankRequest& what) { return open_cpu_ranks(what.ranks); };
  if (const std::string fault = variable("FAULTY_PROCESS"); fault.ends_with("joined")) {
    cpu.process_note_s = 0.2;
    if (fault == "unjoined") cpu.process_join_limit_s = 1.0;
  }
  if (how == "unjoined") ::raise(SIGSTOP);
  cpu.take_share = [how](Processes& processes) {
    if (how == "joined") ::raise(SIGSTOP);
    const CpuShare share = take_cpu_share(processes.share().place, processes.share().processes);
    return DeviceShare{[how, share] {
                         std::unique_ptr<Backend> backend = open_cpu_backend(share.threads);
                         return how.empty() ? std::move(backend) : with_fault(std::move(backend), how);
                       },
                       share.oversubscribed,
                       [&processes](int ranks) {
                         exchange_an_id(processes, ranks);
                         return processes.collectives(ranks);
                       }};
  };
  return run_program(argc, argv, all_suites(), {std::move(cpu)}, how == "build" ? "an older one" : "this one");
}
