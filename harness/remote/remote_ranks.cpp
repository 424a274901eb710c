#include "harness/remote/remote_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "harness/core/error.h"
#include "harness/remote/remote_backend.h"
#include "harness/remote/requests.h"
#include "harness/remote/stall_watch.h"

namespace gpubench {
namespace {

double time_of_day_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The answers after begin(), `on_answer(i)` called after the i-th. Rethrows the first failure once all have answered.
std::vector<std::vector<std::byte>> hear_all(std::span<const std::shared_ptr<RemoteProcess>> processes,
                                             const std::function<void(std::size_t)>& on_answer = {}) {
  std::vector<std::vector<std::byte>> answers(processes.size());
  std::vector<std::size_t> awaited(processes.size());
  std::iota(awaited.begin(), awaited.end(), std::size_t{0});
  std::exception_ptr first;
  while (!awaited.empty()) {
    double seconds = look_every_s;
    std::erase_if(awaited, [&](std::size_t i) {
      try {
        std::optional<std::vector<std::byte>> answer = processes[i]->hear(std::exchange(seconds, 0.0));
        if (!answer) return false;
        answers[i] = *std::move(answer);
        if (on_answer) on_answer(i);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
      return true;
    });
  }
  if (first) std::rethrow_exception(first);
  return answers;
}

template <class Message>
std::vector<std::vector<std::byte>> request_all(std::span<const std::shared_ptr<RemoteProcess>> processes,
                                                const Message& message) {
  for (std::size_t i = 0; i < processes.size(); ++i) processes[i]->begin(message(i));
  return hear_all(processes);
}

/// The first flag that differs, as text for there and here; empty texts: none.
std::pair<std::string, std::string> difference(const Hello& there, const Hello& here) {
  const auto text = [](const Hello& one, const std::string& flag) {
    const auto found = one.settings.find(flag);
    if (found == one.settings.end()) return "no " + flag;
    return found->second.empty() ? flag : flag + " " + found->second;
  };
  for (const Hello* one : {&here, &there}) {
    for (const auto& [flag, value] : one->settings) {
      if (text(there, flag) != text(here, flag)) return {text(there, flag), text(here, flag)};
    }
  }
  return {};
}

class CollectivePlan final : public PlanImpl {
 public:
  CollectivePlan(OpCall call, std::string implementation)
      : call_(std::move(call)), implementation_(std::move(implementation)) {}
  [[nodiscard]] std::string implementation() const override { return implementation_; }
  [[nodiscard]] const OpCall& call() const { return call_; }

 private:
  OpCall call_;
  std::string implementation_;
};

class RemoteCommunicator final : public Communicator {
 public:
  RemoteCommunicator(std::vector<RemoteRank> ranks, std::shared_ptr<StallWatch> watch)
      : ranks_(std::move(ranks)), watch_(std::move(watch)) {}
  RemoteCommunicator(const RemoteCommunicator&) = delete;
  RemoteCommunicator& operator=(const RemoteCommunicator&) = delete;
  ~RemoteCommunicator() override {
    try {
      if (watch_->lost().empty())
        (void)request_all(processes_of(RankGroup::first(size())), [this](std::size_t) {
          MessageWriter request = RemoteProcess::request(Request::close);
          request.put(ranks_.front().set);
          return request;
        });
    } catch (const std::exception& e) {
      watch_->lose(e.what());  // reported by the next request
    }
  }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    MessageWriter request = RemoteProcess::request(Request::offers);
    request.put(ranks_.front().set);
    put_call(request, call);
    put_specs(request, tensors);
    const std::vector<std::byte> answer = ranks_[static_cast<std::size_t>(call.group[0])].process->ask(request);
    return std::make_shared<CollectivePlan>(call, MessageReader(answer).text());
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    const auto* own = dynamic_cast<const CollectivePlan*>(plan.get());
    if (own == nullptr) throw BackendError("the plan is empty or of another backend; expected a collective's");
    const RankGroup& group = own->call().group;
    const auto answers = request_all(processes_of(group), [&](std::size_t member) {
      const RemoteRank& rank = ranks_[static_cast<std::size_t>(group[static_cast<int>(member)])];
      MessageWriter request = RemoteProcess::request(Request::join);
      request.put(rank.set);
      put_call(request, own->call());
      request.put_list(tensors, [&](const Tensor& tensor) {
        const bool is_own = rank.memory->find(tensor.data).has_value();
        put_tensor(request, {tensor.spec, is_own ? tensor.data : nullptr}, *rank.memory);
      });
      return request;
    });
    std::vector<std::shared_ptr<RemoteLaunch>> parts;
    for (std::size_t member = 0; member < answers.size(); ++member) {
      const RemoteRank& rank = ranks_[static_cast<std::size_t>(group[static_cast<int>(member)])];
      parts.push_back(
          std::make_shared<RemoteLaunch>(rank.process, MessageReader(answers[member]).get<std::uint64_t>()));
    }
    return std::make_shared<RemoteCollective>(group, std::move(parts));
  }

  void run(const Launch& launch, int rank) override {
    const auto* own = dynamic_cast<const RemoteCollective*>(launch.get());
    if (own == nullptr) throw BackendError("the launch is empty or of another backend; expected a collective's");
    run_remote(ranks_.at(static_cast<std::size_t>(rank)), own->of(rank));
  }

  // Nothing to stop: a rank that fails still runs its collectives (served_lanes.h); one that hangs is found by
  // StallWatch.
  void stop() override {}
  [[nodiscard]] bool restart() override { return watch_->lost().empty(); }
  [[nodiscard]] std::vector<int> waiting() const override { return watch_->waiting(); }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] std::vector<std::shared_ptr<RemoteProcess>> processes_of(const RankGroup& group) const {
    std::vector<std::shared_ptr<RemoteProcess>> processes;
    for (const int rank : group.members()) processes.push_back(ranks_.at(static_cast<std::size_t>(rank)).process);
    return processes;
  }

  std::vector<RemoteRank> ranks_;
  std::shared_ptr<StallWatch> watch_;
};

/// "ranks of a: 0, 1; of b: 2, 3"; empty for a single host.
std::string hosts_text(std::span<const RankPlace> places) {
  std::map<std::string, std::vector<int>> on;
  for (std::size_t rank = 0; rank < places.size(); ++rank) on[places[rank].host].push_back(static_cast<int>(rank));
  if (on.size() < 2) return "";
  std::string text;
  for (const auto& [host, ranks] : on)
    text += fmt::format("{} of {}: {}", text.empty() ? "ranks" : ";", host, RankGroup(ranks).to_string());
  return text;
}

std::string libraries_text(const DeviceInfo& device) {
  std::string text = device.kind;
  for (const auto& [name, version] : device.libraries) text += fmt::format(", {} {}", name, version);
  return text;
}

std::string bus_of(const DeviceInfo& device) { return property(device, device_property::pci_bus_id); }

/// All ranks as one device. Memory: ranks times the least of any rank; CPU ranks of a host share its memory equally.
DeviceInfo together(const std::vector<DeviceInfo>& devices, std::span<const RankPlace> places) {
  DeviceInfo all = devices.front();
  std::map<std::string, std::int64_t> on_host;
  for (const RankPlace& place : places) ++on_host[place.host];
  const auto ranks = static_cast<std::int64_t>(devices.size());
  all.units = 0;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const bool is_own = !bus_of(devices[rank]).empty();
    const std::int64_t sharing = is_own ? 1 : on_host[places[rank].host];
    if (is_own && rank > 0) all.cache_bytes += devices[rank].cache_bytes;
    all.units += devices[rank].units;
    all.memory_bytes =
        std::min(rank == 0 ? INT64_MAX : all.memory_bytes, ranks * (devices[rank].memory_bytes / sharing));
    all.available_bytes =
        std::min(rank == 0 ? INT64_MAX : all.available_bytes, ranks * (devices[rank].available_bytes / sharing));
  }
  all.properties.emplace_back("hosts", std::to_string(on_host.size()));
  return all;
}

}  // namespace

RemoteRanks::RemoteRanks(std::vector<Channel*> channels, const Hello& own, double limit_s, const Greeting& greeting) {
  greet(channels, own, limit_s, greeting);
  compare_devices();
}

void RemoteRanks::greet(std::span<Channel* const> channels, const Hello& own, double limit_s,
                        const Greeting& greeting) {
  std::vector<std::string> numbers;  // names before the hellos arrive
  for (std::size_t rank = 0; rank < channels.size(); ++rank)
    numbers.push_back(greeting.hosts.empty() ? fmt::format("process {}", rank)
                                             : fmt::format("process {} (on {})", rank, greeting.hosts.at(rank)));
  watch_ = std::make_shared<StallWatch>(numbers, limit_s);
  std::vector<std::shared_ptr<RemoteProcess>> unknown;
  for (std::size_t rank = 0; rank < channels.size(); ++rank)
    unknown.push_back(std::make_shared<RemoteProcess>(*channels[rank], *watch_, static_cast<int>(rank), numbers[rank]));
  std::atomic<bool> sending = true;
  const auto unanswered = [&] {
    std::vector<std::string> all = watch_->at_work();
    if (sending && !all.empty()) all = {all.back()};  // this one blocks the sending; answers are not read yet
    return all;
  };
  const Alarm note(greeting.note_s, [&] {
    if (const std::vector<std::string> missing = unanswered(); !missing.empty())
      greeting.note(
          fmt::format("process 0 has had no answer for {:g} s from {}: each has exited, is stopped, or is "
                      "unreachable",
                      greeting.note_s, fmt::join(missing, ", ")));
  });
  std::vector<double> requested_s(channels.size()), answered_s(channels.size());
  for (std::size_t rank = 0; rank < unknown.size(); ++rank) {
    requested_s[rank] = time_of_day_s();
    unknown[rank]->begin(RemoteProcess::request(Request::hello));
  }
  sending = false;
  std::vector<std::vector<std::byte>> answers;
  try {
    answers = hear_all(unknown, [&](std::size_t rank) { answered_s[rank] = time_of_day_s(); });
  } catch (const DeviceLost& e) {
    const std::vector<std::string> missing = unanswered();
    if (missing.size() < 2) throw;
    throw DeviceLost(fmt::format("{}; no answer from: {}", e.what(), fmt::join(missing, ", ")));
  }
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < channels.size(); ++rank) {
    MessageReader reader(answers[rank]);
    Hello hello;
    const auto version = reader.get<std::uint32_t>();
    hello.build = reader.text();
    hello.host = reader.text();
    hello.pid = reader.get<int>();
    hello.clock_s = reader.get<double>();
    const std::string name = fmt::format("process {} (pid {} on {})", rank, hello.pid, hello.host);
    if (version != protocol_version || hello.build != own.build) {
      throw BackendError(
          fmt::format("{} is of another build: {} there, {} in process 0; start the same program everywhere", name,
                      hello.build, own.build));
    }
    for (auto& [flag, value] : reader.list([&reader] {
           std::string flag = reader.text();
           return std::pair(std::move(flag), reader.text());
         }))
      hello.settings[flag] = std::move(value);
    if (const auto [there, here] = difference(hello, own); there != here)
      throw UsageError(
          fmt::format("{} was started with {}, process 0 with {}; start all processes with the same "
                      "flags",
                      name, there, here));
    const double ahead_s = hello.clock_s - (requested_s[rank] + answered_s[rank]) / 2.0;
    constexpr double min_noted_skew_s = 1.0;
    if (std::fabs(ahead_s) > min_noted_skew_s + (answered_s[rank] - requested_s[rank]) / 2.0) {
      notes_.push_back(
          fmt::format("the clock of {} is {:.3g} s {} that of process 0; measured times do not depend on it", name,
                      std::fabs(ahead_s), ahead_s > 0.0 ? "ahead of" : "behind"));
    }
    places_.push_back({hello.host, ""});  // the GPU is set in compare_devices()
    names.push_back(name);
  }
  if (std::string hosts = hosts_text(places_); !hosts.empty()) notes_.push_back(std::move(hosts));
  watch_ = std::make_shared<StallWatch>(names, limit_s);
  for (std::size_t rank = 0; rank < channels.size(); ++rank)
    processes_.push_back(
        std::make_shared<RemoteProcess>(*channels[rank], *watch_, static_cast<int>(rank), names[rank]));
}

void RemoteRanks::compare_devices() {
  std::vector<DeviceInfo> devices;
  for (const auto& answer :
       request_all(processes_, [](std::size_t) { return RemoteProcess::request(Request::describe); })) {
    MessageReader reader(answer);
    devices.push_back(get_device(reader));
  }
  for (std::size_t rank = 0; rank < devices.size(); ++rank)
    places_[rank].gpu = property(devices[rank], device_property::ordinal);
  std::map<std::pair<std::string, std::string>, std::size_t> taken;  // by host and bus
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    const std::string& name = processes_[rank]->name();
    if (const std::string bus = bus_of(devices[rank]); !bus.empty()) {
      const auto [by, fresh] = taken.try_emplace({places_[rank].host, bus}, rank);
      if (!fresh)
        throw BackendError(
            fmt::format("{} uses the GPU of process {}: {} on {}; start at most one process per GPU on each host", name,
                        by->second, bus, places_[rank].host));
    }
    const std::string there = libraries_text(devices[rank]), here = libraries_text(devices.front());
    if (there != here)
      throw BackendError(
          fmt::format("{} has other libraries: {} there, {} in process 0; install the same versions everywhere", name,
                      there, here));
    if (devices[rank].name != devices.front().name)
      notes_.push_back(
          fmt::format("{} has another processor: {} there, {} in process 0; a sample is the time of the "
                      "slowest rank",
                      name, devices[rank].name, devices.front().name));
  }
}

RankSet RemoteRanks::open(int ranks) {
  if (ranks > this->ranks())
    throw Unsupported(fmt::format("{} ranks need one process each, but only {} were started; use mpirun -np {}", ranks,
                                  this->ranks(), ranks));
  const std::span members = std::span(processes_).first(static_cast<std::size_t>(ranks));
  const std::uint64_t number = ++sets_;
  (void)request_all(members, [&](std::size_t) {
    MessageWriter request = RemoteProcess::request(Request::open);
    request.put(number);
    request.put(ranks);
    return request;
  });
  RankSet set;
  std::vector<RemoteRank> all;
  std::vector<DeviceInfo> devices;
  for (const std::shared_ptr<RemoteProcess>& process : members) {
    all.push_back({process, number});
    set.backends.push_back(open_remote_backend(all.back()));
    set.queues.push_back(open_remote_queues(all.back()));
    devices.push_back(set.backends.back()->device());
    if (!property(devices.back(), oversubscribed_property).empty()) set.flags = {"oversubscribed"};
  }
  set.communicator = std::make_unique<RemoteCommunicator>(std::move(all), watch_);
  set.device = together(devices, std::span(places_).first(members.size()));
  set.timed_where_they_are = true;
  return set;
}

void RemoteRanks::end(int code) {
  MessageWriter request = RemoteProcess::request(Request::end);
  request.put(code);
  for (const std::shared_ptr<RemoteProcess>& process : processes_) process->tell(request);
}

}  // namespace gpubench
