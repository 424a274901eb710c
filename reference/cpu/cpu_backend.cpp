#include "reference/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/processor.h"
#include "harness/core/tuning_cache.h"
#include "reference/cpu/block_io.h"
#include "reference/cpu/host.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/usable_isa.h"

namespace gpubench {
namespace {

using cpu::CpuLaunch;
using cpu::CpuPlan;
using Clock = std::chrono::steady_clock;

constexpr std::size_t smallest_alignment = 256;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::int64_t chunk_grain = std::int64_t{1} << 20;  // minimum bytes per thread

DeviceInfo describe_host(int threads, const cpu::OneDnn& onednn) {
  const cpu::HostMemory memory = cpu::host_memory();
  const std::string processor = cpu::first_processor(), model = processor_model(processor);
  DeviceInfo info;
  info.kind = "cpu";
  info.name = model.empty() ? "unknown processor" : model;
  info.units = threads;
  info.memory_bytes = memory.total_bytes;
  info.available_bytes = memory.available_bytes;
  info.cache_bytes = cpu::cold_cache_bytes();
  info.properties = {{"threads", std::to_string(threads)},
                     {"instruction_sets", fmt::format("{}", fmt::join(instruction_sets(processor), " "))},
                     {"own_kernels", cpu::own_implementation()}};
  for (auto& property : cpu::properties_of(cpu::usable_isa())) info.properties.push_back(std::move(property));
  if (std::string excluded = onednn.excluded_kernels(); !excluded.empty())
    info.properties.emplace_back(device_property::excluded_kernels, std::move(excluded));
  info.libraries = {{"onednn", onednn.version()}, {"openmp", std::to_string(_OPENMP)}};
  return info;
}

const CpuLaunch& own_launch(const Launch& launch) {
  const auto* own = dynamic_cast<const CpuLaunch*>(launch.get());
  if (own == nullptr) throw BackendError("cpu: the launch is empty or of another backend; expected one bound here");
  return *own;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads)
      : onednn_(cpu::usable_isa().limit.onednn), threads_(threads), device_(describe_host(threads, onednn_)) {}

  [[nodiscard]] const DeviceInfo& device() const override { return device_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    // Whole huge pages for large buffers: fewer page faults and TLB misses, less variation between runs.
    const std::size_t alignment = bytes >= huge_page ? huge_page : smallest_alignment;
    const std::size_t padded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    // Linux overcommits memory: refuse what cannot fit, before the kernel kills the process.
    const bool fits = padded >= bytes && padded <= static_cast<std::size_t>(device_.memory_bytes);
    void* data = fits ? std::aligned_alloc(alignment, padded) : nullptr;
    if (data == nullptr) {
      throw BackendError(
          fmt::format("cpu: cannot allocate {} bytes; the machine has {} bytes, of which {} were free at the start",
                      bytes, device_.memory_bytes, device_.available_bytes));
    }
    if (alignment == huge_page) {
      madvise(data, padded, MADV_HUGEPAGE);  // a hint: small pages work too
      touch(static_cast<std::byte*>(data), padded);
    }
    return {static_cast<std::byte*>(data), bytes, std::shared_ptr<void>(data, std::free)};
  }

  void write(std::byte* device, std::span<const std::byte> host) override {
    if (!host.empty()) std::memcpy(device, host.data(), host.size());
  }
  void read(std::span<std::byte> host, const std::byte* device) override {
    if (!host.empty()) std::memcpy(host.data(), device, host.size());
  }
  [[nodiscard]] bool host_visible() const override { return true; }
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override {
    std::atomic<std::uint64_t> terms{0};
    in_chunks(bytes, [&terms, device](std::size_t begin, std::size_t count) {
      terms += fingerprint_terms({device + begin, count}, begin / fingerprint_term_bytes);
    });
    return fingerprint_of(terms, bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    const bool streams = cpu::should_stream(static_cast<std::int64_t>(bytes));
    in_chunks(bytes, [=](std::size_t begin, std::size_t count) {
      cpu::move_bytes(to + begin, from + begin, static_cast<std::int64_t>(count), streams);
    });
  }
  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    constexpr std::size_t block_bytes = std::size_t{4} << 10U;
    static_assert(chunk_grain % block_bytes == 0);
    if (pattern.empty() || block_bytes % pattern.size() != 0) return Backend::fill(device, pattern, bytes);
    std::array<std::byte, block_bytes> block;
    for (std::size_t i = 0; i < block_bytes; i += pattern.size())
      std::memcpy(block.data() + i, pattern.data(), pattern.size());
    const bool streams = cpu::should_stream(static_cast<std::int64_t>(bytes));
    in_chunks(bytes, [=, &block](std::size_t begin, std::size_t count) {
      for (std::size_t done = 0; done < count; done += block_bytes) {
        const auto size = static_cast<std::int64_t>(std::min(block_bytes, count - done));
        cpu::move_bytes(device + begin + done, block.data(), size, streams);
      }
    });
  }

  // Equal calls (layers of a model) share a timed choice.
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    use_threads();
    if (tensors.size() != call.inputs.size() + call.outputs.size()) {
      throw BackendError(fmt::format("cpu {} '{}': got {} tensors; expected {} inputs and {} outputs", call.kind.name,
                                     call.label, tensors.size(), call.inputs.size(), call.outputs.size()));
    }
    // tf32 permits rounding of a product's operands; here they are exact.
    if (call.math.inputs != Math::Inputs::exact && call.math.inputs != Math::Inputs::tf32)
      cpu::refuse(call, "products of split inputs; expected exact inputs on this backend");
    const auto plan_it = [&] {
      return cpu::plan_or_widen(cpu::implementation_of(call.kind), call, tensors, {threads_, onednn_, options});
    };
    if (!options.pinned.empty() || options.deterministic) return plan_it();
    const std::string key = choice_key(call, tensors);
    if (const auto timed = timed_.find(key); timed != timed_.end()) return timed->second;
    Plan plan = plan_it();
    if (plan->choice() == Choice::timed) timed_.emplace(key, plan);
    return plan;
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto* own = dynamic_cast<const CpuPlan*>(plan.get());
    if (own == nullptr) throw BackendError("cpu: the plan is empty or of another backend; expected one planned here");
    if (workspace.bytes < own->workspace_bytes()) {
      throw BackendError(fmt::format("cpu: {} was bound with a workspace of {} bytes; expected at least {}",
                                     own->implementation(), workspace.bytes, own->workspace_bytes()));
    }
    return own->bind(tensors, workspace);
  }

  [[nodiscard]] Launch launch_of(std::function<void(void* stream)> work) override {
    return cpu::launch_of([work = std::move(work)] { work(nullptr); });
  }

  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return claims_; }

  [[nodiscard]] Launch sequence(std::span<const Launch> launches,
                                const Schedule& /*in order is always allowed*/) override {
    for (const Launch& launch : launches) (void)own_launch(launch);
    return cpu::launch_of([held = std::vector<Launch>(launches.begin(), launches.end())] {
      for (const Launch& launch : held) (*static_cast<const CpuLaunch*>(launch.get()))();
    });
  }

  void run(const Launch& launch) override {
    use_threads();
    own_launch(launch)();
  }

  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    use_threads();
    if (copies.empty() || plan.samples < 0 || plan.batch < 1) {
      throw BackendError(
          fmt::format("cpu: a round of {} samples of {} runs over {} copies; expected at least one run and copy",
                      plan.samples, plan.batch, copies.size()));
    }
    std::vector<const CpuLaunch*> own;
    own.reserve(copies.size());
    for (const Launch& launch : copies) own.push_back(&own_launch(launch));
    cpu::PinnedThreads pinned(threads_);
    // Rotates over the copies: sample i, run j uses copies[(i * batch + j) mod copies].
    std::size_t next = 0;
    const auto run_next = [&own, &next] {
      (*own[next])();
      next = next + 1 == own.size() ? 0 : next + 1;
    };
    const Clock::time_point start = Clock::now();
    int calls = 0;
    for (; calls < plan.warmup_calls || std::chrono::duration<double>(Clock::now() - start).count() < plan.warmup_s;
         ++calls) {
      run_next();
      if (calls == 0) pinned.release_if_threads_changed();
    }
    next = 0;
    RoundTimes times;
    times.wall_ns.resize(static_cast<std::size_t>(plan.samples));
    for (double& sample : times.wall_ns) {
      const Clock::time_point begin = Clock::now();
      for (std::int64_t call = 0; call < plan.batch; ++call) run_next();
      sample = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    }
    times.device_ns = times.wall_ns;
    times.runs = calls + plan.samples * plan.batch;
    return times;
  }

  void on_each_thread(const std::function<void()>& work) override {
    use_threads();
#pragma omp parallel num_threads(threads_)
    work();
  }

 private:
  // Calls work(first, count) for pieces of [0, bytes) on the threads of the ops; orders streamed stores.
  template <class Work>
  void in_chunks(std::size_t bytes, const Work& work) const {
    use_threads();
    cpu::parallel_chunks(threads_, static_cast<std::int64_t>(bytes), chunk_grain,
                         [&work](std::int64_t begin, std::int64_t end) {
                           work(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
                           cpu::stream_fence();
                         });
  }

  // Clearing pages dominates a case's set-up, more so in virtual machines. All threads fault pages in, each near the
  // processor that will use them.
  void touch(std::byte* data, std::size_t bytes) const {
    in_chunks(bytes, [data](std::size_t begin, std::size_t count) {
      for (std::size_t page = (begin + huge_page - 1) / huge_page * huge_page; page < begin + count; page += huge_page)
        data[page] = std::byte{0};
    });
  }

  // OpenMP stores the number of threads per calling thread; oneDNN reads it when it plans and runs.
  void use_threads() const {
    if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  }

  cpu::OneDnn onednn_;
  int threads_;
  std::map<std::string, Plan> timed_;  // by choice_key()
  DeviceInfo device_;
  const std::vector<FusionClaim> claims_ = fusion_claims(cpu::op_files());
};

constexpr int max_ranks = 64;

// Binds to the `place`-th `threads` of the processors. A rank's OpenMP threads inherit the binding.
void bind_to(const std::vector<int>& processors, int place, int threads) {
  cpu_set_t own;
  CPU_ZERO(&own);
  for (int i = place * threads; i < (place + 1) * threads; ++i) CPU_SET(processors[static_cast<std::size_t>(i)], &own);
  (void)sched_setaffinity(0, sizeof own, &own);  // if refused, ranks share processors
}

}  // namespace

std::unique_ptr<Backend> open_cpu_backend(int threads) {
  omp_set_dynamic(0);  // work is split by the number of threads, which must not change
  return std::make_unique<CpuBackend>(threads > 0 ? threads : cpu::usable_threads());
}

CpuShare take_cpu_share(int place, int processes) {
  if (processes < 1 || place < 0 || place >= processes)
    throw BackendError(fmt::format("cpu: share {} of {}; expected from 0 to one less", place, processes));
  const int usable = cpu::usable_threads();
  const std::vector<int> processors = cpu::usable_processors();
  if (processes > usable) return {1, true};
  const int threads = usable / processes;
  if (processes > 1 && static_cast<int>(processors.size()) >= processes * threads) bind_to(processors, place, threads);
  return {threads, false};
}

RankSet open_cpu_ranks(int ranks) {
  if (ranks < 1 || ranks > max_ranks)
    throw BackendError(fmt::format("cpu: {} ranks; expected from 1 to {}", ranks, max_ranks));
  const int usable = cpu::usable_threads();
  const bool oversubscribed = ranks > usable;
  const int threads = oversubscribed ? 1 : usable / ranks;
  RankSet set;
  for (int rank = 0; rank < ranks; ++rank) set.backends.push_back(open_cpu_backend(threads));
  set.communicator = open_cpu_communicator(threads, oversubscribed);
  set.device = set.backends.front()->device();
  set.device.units = oversubscribed ? usable : ranks * threads;
  if (oversubscribed) set.flags.emplace_back("oversubscribed");
  const std::vector<int> processors = cpu::usable_processors();
  if (!oversubscribed && static_cast<int>(processors.size()) >= ranks * threads) {
    set.enter = [processors, threads](int rank) { bind_to(processors, rank, threads); };
  }
  return set;
}

}  // namespace gpubench
