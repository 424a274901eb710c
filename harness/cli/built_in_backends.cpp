#include "harness/cli/run_cli.h"

#include <utility>

#include "harness/cli/cuda_module.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/usable_isa.h"

namespace gpubench {

std::vector<BackendEntry> built_in_backends(const char* argv0) {
  BackendEntry entry;
  entry.name = "cpu";
  entry.open = [](const OpenRequest&) { return open_cpu_backend(); };
  entry.precisions = [](int /*no GPU*/) { return std::vector<std::string>{"f32", "bf16", "mxfp8", "nvfp4"}; };
  entry.open_ranks = [](const RankRequest& what) { return open_cpu_ranks(what.ranks); };
  entry.take_share = [](Processes& processes) {
    const CpuShare share = take_cpu_share(processes.share().place, processes.share().processes);
    (void)cpu::usable_isa();  // found in a child, so fork before any threads exist
    return DeviceShare{[threads = share.threads] { return open_cpu_backend(threads); }, share.oversubscribed};
  };
  entry.before_children = [] { (void)cpu::usable_isa(); };
  std::vector<BackendEntry> backends{std::move(entry)};
  if (std::optional<BackendEntry> cuda = cuda_entry(own_path(argv0))) backends.push_back(*cuda);
  return backends;
}

}  // namespace gpubench
