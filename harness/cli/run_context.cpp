#include "harness/cli/run_context.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>

#include "harness/cli/flags.h"
#include "harness/cli/implementations.h"
#include "harness/cli/selection.h"
#include "harness/cli/verb_output.h"
#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/hardware/telemetry.h"
#include "harness/measure/statistics.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "harness/report/tuning_cache_file.h"
#include "harness/run/rank_group.h"

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

std::string build_text(const Environment& environment) {
  std::vector<std::string> known;
  for (const auto& [key, value] : build_facts(environment)) {
    if (!value.empty()) known.push_back(value);
  }
  return joined(known);
}

// Process, start and clock together are unique.
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

std::vector<std::pair<std::string, std::string>> context_variables(const Environment& environment) {
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

namespace {

auto from_report(const std::string& path, std::string_view flag, const auto& read) {
  try {
    return read(path);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("{}: {}; expected a report of gpubench", flag, e.what()));
  }
}

std::string tuning_folder(const Options& options, const Environment& environment) {
  if (options.tuning_cache) return *options.tuning_cache == "off" ? std::string() : *options.tuning_cache;
  return default_tuning_folder(environment.variable("XDG_CACHE_HOME"), environment.variable("HOME"));
}

}  // namespace

RunOptions run_options(const Options& options, Tier tier, const Environment& environment, const DeviceChoice& device) {
  RunOptions run = options.run;
  run.tier = tier;
  if (options.deadline_s) {
    run.deadline_floor_s = run.deadline_cap_s = run.opening_deadline_s = *options.deadline_s;
  } else {
    run.plan_limit_s = device.backend->plan_limit_s;
  }
  if (run.locked_clock_mhz > 0 && device.word() == "cpu")
    throw UsageError("--locked-clock: a CPU has no SM clock; leave the flag out, or choose a GPU (--device)");
  run.rerun_prefix = rerun_prefix(options);
  run.implementations = named_implementations(options.implementations, options.python);
  check_versus(options.versus, run.implementations);
  if (options.pin) run.pins = from_report(*options.pin, "--pin", read_pins);
  if (options.like) run.batches = from_report(*options.like, "--like", read_batches);
  if (const std::string folder = tuning_folder(options, environment); !folder.empty()) {
    run.open_choices = [folder, deterministic = run.deterministic](const DeviceInfo& info) {
      return std::make_unique<TuningCacheFile>(folder, TuningSetting{info, deterministic, std::string(version())});
    };
  }
  run.open_telemetry = [](const DeviceInfo& info) { return open_telemetry(info); };
  if (device.backend->open_ranks) {
    run.open_ranks = [open = device.backend->open_ranks, limit_s = device.backend->rank_stall_limit_s,
                      plan_limit_s = device.backend->plan_limit_s, is_virtual = options.selection.virtual_ranks,
                      first = OpenRequest{device.ordinal}](int ranks, const OwnImplementation* under_test) {
      RankSet set = open({ranks, is_virtual, first});
      for (std::unique_ptr<Backend>& one : set.backends) {
        if (under_test == nullptr) break;
        Backend& inner = *one;
        one = with_implementation(inner, *under_test, std::move(one));
      }
      return open_rank_group(std::move(set), limit_s, plan_limit_s);
    };
  }
  return run;
}

void open_failures_folder(const Options& options) {
  const std::string& folder = options.run.save_failures;
  if (folder.empty()) return;
  if (::mkdir(folder.c_str(), 0700) != 0) {
    const std::error_code why{errno, std::generic_category()};
    if (why != std::errc::file_exists)
      fail_to_write("--save-failures", WriteError(fmt::format("{}: {}", visible(folder), why.message()), why.value()));
    // An existing folder keeps its permissions; others must not be able to write to it.
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
      throw UsageError(
          fmt::format("--save-failures: {} is a link or not a folder; name the folder itself", visible(folder)));
    if (status.st_uid != ::geteuid() || (status.st_mode & S_IWOTH) != 0)
      throw UsageError(
          fmt::format("--save-failures: other users can change {}; name a new folder, or one that only you can change",
                      visible(folder)));
  }
  std::error_code error;
  if (!std::filesystem::is_empty(folder, error) && !options.writing.replace && !options.resume)
    throw UsageError(fmt::format("--save-failures: {} already has files; name another folder (--force adds to it)",
                                 visible(folder)));
}

bool Turns::operator()(const CaseRecord& record) {
  constexpr double longest_s = 3600.0;
  if (turn_ > 0) {
    if (Clock::now() - begun_ < length_) return true;
    answer(record);
  }
  std::string line;
  if (!std::getline(*in_, line)) return false;
  const double seconds = number<double>(line).value_or(0.0);
  if (!(seconds > 0.0 && seconds <= longest_s))
    throw UsageError(fmt::format("--turns: '{}' is not a number of seconds from 0 to {}", visible(line), longest_s));
  ++turn_;
  first_ = record.rounds.size();
  length_ = std::chrono::duration<double>(seconds);
  begun_ = Clock::now();
  return true;
}

void Turns::answer(const CaseRecord& record) const {
  std::vector<double> runs_ns;
  for (std::size_t i = first_; i < record.rounds.size(); ++i) {
    if (!record.rounds[i].valid) continue;
    for (const double ns : record.rounds[i].times.device_ns) runs_ns.push_back(ns / static_cast<double>(record.batch));
  }
  *out_ << fmt::format("{{\"turn\": {}, \"copies\": {}, \"rounds\": {}, \"median_ns\": {}}}", turn_, record.copies,
                       record.rounds.size() - first_, runs_ns.empty() ? "null" : fmt::format("{}", median(runs_ns)))
        << std::endl;
}

}  // namespace gpubench
