#include "harness/cli/run_setup.h"

#include <fmt/format.h>

#include "harness/cli/run_context.h"
#include "harness/cli/selection.h"
#include "harness/core/error.h"
#include "harness/hardware/telemetry.h"
#include "harness/report/pins.h"
#include "harness/report/reader.h"
#include "harness/report/tuning_cache_file.h"
#include "harness/run/rank_group.h"

namespace gpubench {
namespace {

auto from_report(const std::string& path, std::string_view flag, const auto& read) {
  try {
    return read(path);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("{}: {}; expected a report that gpubench wrote", flag, e.what()));
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
  if (options.deadline_s) run.deadline_floor_s = run.deadline_cap_s = run.opening_deadline_s = *options.deadline_s;
  if (run.locked_clock_mhz > 0 && device.word() == "cpu")
    throw UsageError("--locked-clock: a CPU does not tell an SM clock; leave the flag out, or choose a GPU (--device)");
  run.rerun_prefix = rerun_prefix(options);
  if (options.pin) run.pins = from_report(*options.pin, "--pin", read_pins);
  if (options.like) run.batches = from_report(*options.like, "--like", read_batches);
  if (const std::string folder = tuning_folder(options, environment); !folder.empty()) {
    run.open_choices = [folder, deterministic = run.deterministic](const DeviceInfo& info) {
      return std::make_unique<TuningCacheFile>(folder, TuningSetting{info, deterministic, std::string(version())});
    };
  }
  run.open_telemetry = [](const DeviceInfo& info) { return open_telemetry(info); };
  if (device.backend->open_ranks) {
    run.open_ranks = [open = device.backend->open_ranks, is_virtual = options.selection.virtual_ranks,
                      first = OpenRequest{device.ordinal}](int ranks) {
      return open_rank_group(open({ranks, is_virtual, first}));
    };
  }
  return run;
}

}  // namespace gpubench
