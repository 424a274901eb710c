#include "harness/cli/process_ranks.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "harness/core/error.h"
#include "harness/parity/candidate_judge.h"
#include "harness/run/forwarding_backend.h"

namespace gpubench {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "a host without a name";
  return name.data();
}

/// Gives the launcher the time to pass on what this process has written: one that is told to end all processes may
/// leave the rest of it unread (MPICH 4.0 does).
void let_launcher_read() {
  using namespace std::chrono_literals;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    for (int looks = 0, unread = 1; looks < 100 && unread > 0; ++looks) {
      if (::ioctl(stream, FIONREAD, &unread) != 0) break;  // no pipe
      if (unread > 0) std::this_thread::sleep_for(10ms);
    }
  }
  std::this_thread::sleep_for(200ms);  // from the launcher's helper on this host to the launcher
}

/// A backend whose device says more than it knows itself.
class DescribedBackend final : public ForwardingBackend {
 public:
  DescribedBackend(Backend& inner, std::unique_ptr<Backend> owner, DeviceInfo info)
      : ForwardingBackend(inner, std::move(owner)), info_(std::move(info)) {}
  [[nodiscard]] const DeviceInfo& device() const override { return info_; }

 private:
  DeviceInfo info_;
};

}  // namespace

ProcessRanks::ProcessRanks(std::unique_ptr<Processes> processes, const BackendEntry& backend, std::string build,
                           double limit_s)
    : processes_(std::move(processes)),
      devices_(backend.name == "cpu" ? "CPUs" : "GPUs"),
      build_(std::move(build)),
      limit_s_(limit_s) {
  if (!backend.take_share)
    throw BackendError(fmt::format("the {} backend has no ranks in several processes", backend.name));
  share_ = backend.take_share(*processes_);
  if (!share_.collectives) share_.collectives = [this](int ranks) { return processes_->collectives(ranks); };
}

ProcessRanks::~ProcessRanks() {
  if (serving_.joinable()) serving_.detach();  // only where end() was never reached: the process ends
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
  setup.hello.build = build_;
  setup.hello.host = host_name();
  setup.hello.pid = static_cast<int>(::getpid());
  setup.open_backend = [this] { return described(share_.open()); };
  setup.open_collectives = share_.collectives;
  setup.judge = [](const OpCall& call, std::span<const TensorSpec> tensors) {
    return std::make_unique<CandidateJudge>(call, tensors);
  };
  return setup;
}

void ProcessRanks::serve() {
  // Process 0 decides when to stop; the launcher ends what outlives it.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // whatever a library prints here is no result
  (void)serve_rank(processes_->channel(0), setup());
  processes_->finish();
}

void ProcessRanks::greet() {
  own_ = local_channel();
  serving_ = std::thread([this] { (void)serve_rank(*own_.second, setup()); });
  std::vector<Channel*> channels{own_.first.get()};
  for (int rank = 1; rank < processes_->size(); ++rank) channels.push_back(&processes_->channel(rank));
  ranks_ = std::make_unique<RemoteRanks>(std::move(channels), setup().hello, limit_s_);
  notes_ = ranks_->notes();
  notes_.insert(notes_.begin(), fmt::format("{} processes, joined by {}, are the ranks of this run, on {}",
                                            processes_->size(), processes_->library(), devices_));
  if (share_.is_oversubscribed)
    notes_.emplace_back(
        "there are more processes than processors: they wait for each other, and the figures say nothing of as many "
        "devices");
}

BackendEntry ProcessRanks::entry(const BackendEntry& backend) {
  BackendEntry entry = backend;
  entry.open = [this](const OpenRequest&) { return described(share_.open(), ranks_->places()); };
  entry.open_ranks = [this](const RankRequest& what) { return ranks_->open(what.ranks); };
  entry.ranks_have_processors = true;  // or greet() has said that they have not
  entry.rank_stall_limit_s = 1e9;      // the processes are watched one by one
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

}  // namespace gpubench
