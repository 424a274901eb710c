#include "harness/cli/run_together.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>
#include <ostream>
#include <utility>

#include "harness/cli/device.h"
#include "harness/cli/exit_code.h"
#include "harness/cli/process_ranks.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

void expect_shareable(const Options& options, const LauncherPlace& place) {
  if (options.device.starts_with("cuda:"))
    throw UsageError(
        fmt::format("--device {}: each of several processes ({}, {} of them) takes the GPU of its place on its host; "
                    "expected --device cuda",
                    visible(options.device), place.launcher, place.processes));
  if (options.selection.virtual_ranks)
    throw UsageError(fmt::format("--virtual-ranks: they are of one process, and {} started {}; start one",
                                 place.launcher, place.processes));
  if (!options.implementations.empty())
    throw UsageError(
        fmt::format("--impl: an implementation under test runs in one process, and {} started {}; start one",
                    place.launcher, place.processes));
}

const BackendEntry& shared_backend(const Options& options, const Environment& environment, const LauncherPlace& place) {
  const DeviceChoice choice = choose_device(options.device, environment);
  if (choice.backend->take_share) return *choice.backend;
  throw CannotMeasure(fmt::format("{} started {} processes, and the {} backend has no ranks in several", place.launcher,
                                  place.processes, choice.backend->name));
}

}  // namespace

int act_together(Options options, const Environment& environment, const LauncherPlace& place,
                 const std::function<int(const Options&, const Environment&)>& act) {
  expect_shareable(options, place);
  if (!environment.join_processes)
    throw CannotMeasure(
        fmt::format("{} started {} processes, and this program joins none", place.launcher, place.processes));
  const Tell tell = [&environment](const std::string& text) {
    environment.err << "note: " << visible(text) << std::endl;
  };
  const BackendEntry* backend = nullptr;
  std::unique_ptr<ProcessRanks> ranks;
  const auto refuse = [&](const std::exception& e) {
    // Each that cannot join says so: process 0 may be able to, and waits for it.
    if (place.rank > 0)
      environment.err << fmt::format("gpubench: process {}: {}", place.rank, visible(e.what())) << std::endl;
    throw CannotMeasure(e.what());
  };
  try {
    backend = &shared_backend(options, environment, place);
    const double limit_s = options.deadline_s.value_or(backend->process_stall_limit_s);
    const double join_limit_s = limit_s > 0.0 ? std::max(limit_s, backend->process_join_limit_s) : 0.0;
    Hello own;
    own.build = fmt::format("{} {}", GPUBENCH_BUILD_ID, environment.revision);
    own.settings = options.shared_settings;
    ranks = std::make_unique<ProcessRanks>(join_in_time(place, backend->process_note_s, join_limit_s, tell,
                                                        [&] { return environment.join_processes(place, limit_s); }),
                                           *backend, std::move(own), limit_s);
  } catch (const CannotMeasure& e) {
    refuse(e);
  } catch (const BackendError& e) {
    refuse(e);
  }
  if (!ranks->reports()) {
    ranks->serve(tell);
    return exit_codes::ok;
  }
  const auto complain = [&environment](const std::exception& e) {
    environment.err << "gpubench: " << visible(e.what()) << std::endl;
  };
  try {
    ranks->greet(tell);
  } catch (const UsageError& e) {
    complain(e);
    ranks->end(exit_codes::usage, true);
  } catch (const BackendError& e) {
    complain(e);
    ranks->end(exit_codes::could_not_measure, true);
  }
  for (const std::string& note : ranks->notes()) tell(note);
  Environment together = environment;
  together.backends = {ranks->entry(*backend)};
  options.device = backend->name;
  options.isolate = false;
  options.started_by = fmt::format("{} {} ", place.launcher == "srun" ? "srun -n" : "mpirun -np", place.processes);
  options.selection.processes = place.processes;
  int code = exit_codes::could_not_measure;
  try {
    code = act(options, together);
  } catch (const UsageError& e) {
    complain(e);
    code = exit_codes::usage;
  } catch (const std::bad_alloc&) {
    environment.err << out_of_memory;
  } catch (const std::exception& e) {
    complain(e);
    if (const int signal = environment.stop.load(); signal != 0) code = exit_code({{}, signal, true});
  }
  environment.out.flush();
  environment.err.flush();
  ranks->end(code);
  return code;
}

}  // namespace gpubench
