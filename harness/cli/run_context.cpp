#include "harness/cli/run_context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "harness/core/hash.h"

namespace gpubench {

std::string_view version() { return GPUBENCH_VERSION; }

std::vector<std::pair<std::string, std::string>> build_facts(const Environment& environment) {
#if defined(__clang__)
  const std::string compiler = fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  const std::string compiler = fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
  std::vector<std::pair<std::string, std::string>> facts{
      {"compiler", compiler}, {"type", GPUBENCH_BUILD_TYPE}, {"flags", GPUBENCH_CXX_FLAGS}};
  if (!environment.revision.empty()) facts.insert(facts.begin(), {"revision", environment.revision});
  return facts;
}

// No two runs share process, start and clock.
std::string invocation_id(std::time_t started) {
  const auto ticks = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  const auto process = static_cast<std::uint64_t>(::getpid());
  return fmt::format("{:016x}", hash_at(hash_at(static_cast<std::uint64_t>(started), process), ticks));
}

HostContext host_context(const HostInfo& host, const std::string& executable) {
  HostContext context;
  context.host_name = host.host_name;
  context.executable = executable;
  context.num_cpus = host.cpus;
  context.mhz_per_cpu = host.mhz;
  context.cpu_scaling_enabled = host.cpu_scaling_enabled();
  for (const HostCache& cache : host.caches)
    context.caches.push_back({cache.type, cache.level, cache.bytes, cache.sharing});
  context.load_avg = host.load_avg;
  return context;
}

std::vector<std::pair<std::string, std::string>> telling_variables(const Environment& environment) {
  std::vector<std::pair<std::string, std::string>> set;
  for (const char* variable : {"OMP_NUM_THREADS",
                               "OMP_PROC_BIND",
                               "OMP_PLACES",
                               "OMP_DYNAMIC",
                               "OMP_WAIT_POLICY",
                               "GOMP_CPU_AFFINITY",
                               "GOMP_SPINCOUNT",
                               "ONEDNN_MAX_CPU_ISA",
                               "DNNL_MAX_CPU_ISA",
                               "ONEDNN_DEFAULT_FPMATH_MODE",
                               "DNNL_DEFAULT_FPMATH_MODE",
                               "ONEDNN_VERBOSE",
                               "DNNL_VERBOSE",
                               "MALLOC_ARENA_MAX",
                               "CUDA_VISIBLE_DEVICES",
                               "CUDA_LAUNCH_BLOCKING",
                               "CUDA_MODULE_LOADING",
                               "NVIDIA_TF32_OVERRIDE",
                               "CUBLAS_WORKSPACE_CONFIG",
                               "NCCL_ALGO",
                               "NCCL_PROTO",
                               "NCCL_P2P_DISABLE"}) {
    if (std::string value = environment.variable(variable); !value.empty())
      set.emplace_back(variable, std::move(value));
  }
  return set;
}

}  // namespace gpubench
