#include "harness/cli/process_ranks.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <new>
#include <ostream>
#include <thread>
#include <utility>

#include "harness/cli/device.h"
#include "harness/cli/exit_code.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/parity/judge.h"
#include "harness/run/forwarding_backend.h"

namespace gpubench {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "a host without a name";
  return name.data();
}

/// Waits until the launcher has read this process's output: when told to end all processes, MPICH 4.0 drops the rest.
void let_launcher_read() {
  using namespace std::chrono_literals;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    for (int looks = 0, unread = 1; looks < 100 && unread > 0; ++looks) {
      if (::ioctl(stream, FIONREAD, &unread) != 0) break;  // not a pipe
      if (unread > 0) std::this_thread::sleep_for(10ms);
    }
  }
  std::this_thread::sleep_for(200ms);  // for the way from the launcher's helper on this host to the launcher
}

/// A backend with more facts in its DeviceInfo.
class DescribedBackend final : public ForwardingBackend {
 public:
  DescribedBackend(Backend& inner, std::unique_ptr<Backend> owner, DeviceInfo info)
      : ForwardingBackend(inner, std::move(owner)), info_(std::move(info)) {}
  [[nodiscard]] const DeviceInfo& device() const override { return info_; }

 private:
  DeviceInfo info_;
};

std::string process_text(int rank, int processes) {
  return fmt::format("process {} of {} (pid {} on {})", rank, processes, ::getpid(), host_name());
}

}  // namespace

std::unique_ptr<Processes> join_in_time(const LauncherPlace& place, double note_s, double limit_s, const Tell& tell,
                                        const std::function<std::unique_ptr<Processes>()>& join) {
  const auto report = [&](double waited_s, const char* advice) {
    tell(
        fmt::format("{} is still in MPI_Init after {:g} s ({}): a process without this note is stopped, has not "
                    "started, or does not run 'gpubench run'{}",
                    process_text(place.rank, place.processes), waited_s, place.launcher, advice));
  };
  const Alarm note(note_s, [&] { report(note_s, ""); });
  const Alarm end(limit_s, [&] {
    report(limit_s, "; ending the run (--deadline off: no limit)");
    let_launcher_read();
    std::_Exit(exit_codes::could_not_measure);  // MPI_Abort must not be called before MPI_Init returns
  });
  return join();
}

ProcessRanks::ProcessRanks(std::unique_ptr<Processes> processes, const BackendEntry& backend, Hello own, double limit_s)
    : processes_(std::move(processes)),
      devices_(backend.name == "cpu" ? "CPUs" : "GPUs"),
      own_hello_(std::move(own)),
      limit_s_(limit_s),
      note_s_(backend.process_note_s) {
  if (!backend.take_share)
    throw BackendError(fmt::format("the {} backend has no ranks in several processes", backend.name));
  share_ = backend.take_share(*processes_);
  if (!share_.collectives) share_.collectives = [this](int ranks) { return processes_->collectives(ranks); };
}

ProcessRanks::~ProcessRanks() {
  if (serving_.joinable()) serving_.detach();  // only if end() was never reached; the process ends then
}

std::unique_ptr<Backend> ProcessRanks::described(std::unique_ptr<Backend> inner,
                                                 std::span<const RankPlace> places) const {
  DeviceInfo info = inner->device();
  if (!places.empty()) info.properties.emplace_back(device_property::rank_places, rank_places_text(places));
  info.libraries.emplace_back("mpi", processes_->library());
  info.libraries.insert(info.libraries.end(), share_.libraries.begin(), share_.libraries.end());
  info.properties.emplace_back("processes", std::to_string(processes_->size()));
  if (share_.is_oversubscribed) info.properties.emplace_back(oversubscribed_property, "on");
  Backend& held = *inner;
  return std::make_unique<DescribedBackend>(held, std::move(inner), std::move(info));
}

ServerSetup ProcessRanks::setup() {
  ServerSetup setup;
  setup.hello = own_hello_;
  setup.hello.host = host_name();
  setup.hello.pid = static_cast<int>(::getpid());
  setup.open_backend = [this] { return described(share_.open()); };
  setup.open_collectives = share_.collectives;
  setup.judge = [](const OpCall& call, std::span<const TensorSpec> tensors) {
    return std::make_unique<CandidateJudge>(call, tensors);
  };
  return setup;
}

void ProcessRanks::serve(const Tell& tell) {
  // Process 0 decides when to stop; the launcher kills processes that outlive it.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // output of libraries must not mix with results
  unasked_.emplace(note_s_, [&] {
    tell(fmt::format(
        "{0} has had no request from process 0 (on {2}) for {1:g} s: process 0 is stopped, has exited, or is "
        "still opening its device",
        process_text(processes_->rank(), processes_->size()), note_s_, processes_->host(0)));
  });
  ServerSetup asked = setup();
  asked.greeted = [this] { unasked_.reset(); };
  (void)serve_rank(processes_->channel(0), asked);
  processes_->finish();
}

void ProcessRanks::greet(const Tell& tell) {
  own_ = local_channel();
  serving_ = std::thread([this] { (void)serve_rank(*own_.second, setup()); });
  std::vector<Channel*> channels{own_.first.get()};
  for (int rank = 1; rank < processes_->size(); ++rank) channels.push_back(&processes_->channel(rank));
  // If the limit comes before the note, the error names the same processes.
  Greeting greeting{{}, limit_s_ > 0.0 && limit_s_ <= note_s_ ? 0.0 : note_s_, tell};
  for (int rank = 0; rank < processes_->size(); ++rank) greeting.hosts.push_back(processes_->host(rank));
  ranks_ = std::make_unique<RemoteRanks>(std::move(channels), setup().hello, limit_s_, greeting);
  notes_ = ranks_->notes();
  notes_.insert(notes_.begin(), fmt::format("{} processes, joined by {}, are the ranks of this run, on {}",
                                            processes_->size(), processes_->library(), devices_));
  if (share_.is_oversubscribed)
    notes_.emplace_back(
        "more processes than processors: they wait for each other, so the figures say nothing about that many devices");
}

BackendEntry ProcessRanks::entry(const BackendEntry& backend) {
  BackendEntry entry = backend;
  entry.open = [this](const OpenRequest&) { return described(share_.open(), ranks_->places()); };
  entry.open_ranks = [this](const RankRequest& what) { return ranks_->open(what.ranks); };
  entry.ranks_have_processors = true;  // or greet() has warned that they have not
  entry.rank_stall_limit_s = 1e9;      // each process is watched separately
  entry.has_virtual_ranks = false;
  return entry;
}

void ProcessRanks::end(int code, bool at_once) {
  if (at_once || ranks_ == nullptr || ranks_->lost()) {
    let_launcher_read();
    processes_->abort(code);
  }
  ranks_->end(code);
  serving_.join();
  processes_->finish();
}

namespace {

void expect_shareable(const Options& options, const LauncherPlace& place) {
  if (options.device.starts_with("cuda:"))
    throw UsageError(
        fmt::format("--device {}: each of several processes ({}, {} of them) takes the GPU of its place on its host; "
                    "expected --device cuda",
                    visible(options.device), place.launcher, place.processes));
  if (options.selection.virtual_ranks)
    throw UsageError(fmt::format("--virtual-ranks: virtual ranks share one process, but {} started {}; start one",
                                 place.launcher, place.processes));
  if (!options.implementations.empty())
    throw UsageError(
        fmt::format("--impl: an implementation under test runs in one process, but {} started {}; start one",
                    place.launcher, place.processes));
}

const BackendEntry& shared_backend(const Options& options, const Environment& environment, const LauncherPlace& place) {
  const DeviceChoice choice = choose_device(options.device, environment);
  if (choice.backend->take_share) return *choice.backend;
  throw CannotMeasure(fmt::format("{} started {} processes, but the {} backend has no ranks in several", place.launcher,
                                  place.processes, choice.backend->name));
}

}  // namespace

int run_all_ranks(Options options, const Environment& environment, const LauncherPlace& place,
                  const std::function<int(const Options&, const Environment&)>& act) {
  expect_shareable(options, place);
  if (!environment.join_processes)
    throw CannotMeasure(
        fmt::format("{} started {} processes, but this program cannot join them", place.launcher, place.processes));
  const Tell tell = [&environment](const std::string& text) {
    environment.err << "note: " << visible(text) << std::endl;
  };
  const BackendEntry* backend = nullptr;
  std::unique_ptr<ProcessRanks> ranks;
  const auto refuse = [&](const std::exception& e) {
    // Each reports its error: process 0 may have joined and wait for it.
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
