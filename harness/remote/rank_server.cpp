#include "harness/remote/rank_server.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/remote/requests.h"
#include "harness/remote/served_lanes.h"
#include "harness/remote/served_memory.h"

namespace gpubench {
namespace {

constexpr double receive_s = 3600.0;  // then retried: the wait for process 0 has no limit

class RankServer {
 public:
  RankServer(Channel& channel, const ServerSetup& setup)
      : channel_(channel), setup_(setup), answers_(channel, progress_), lanes_(progress_) {}

  int serve() {
    while (true) {
      const std::optional<std::vector<std::byte>> received = channel_.receive(receive_s);
      if (!received) continue;
      MessageReader message(*received);
      const auto request = message.get<Request>();
      if (request == Request::end) return message.get<int>();
      answers_.begin();
      MessageWriter answer;
      answer.put(Answer::done);
      try {
        progress_.compute().begin(&interned(std::string(name(request))));
        act(request, message, answer);
        message.expect_end();
      } catch (...) {
        answer = failure();
      }
      progress_.compute().end();
      request == Request::release ? answers_.skip_answer() : answers_.answer(answer);
    }
  }

 private:
  static MessageWriter failure() {
    const auto told = [](Failure failure, const char* what) {
      MessageWriter answer;
      answer.put(Answer::failed);
      answer.put(failure);
      answer.put(std::string_view(what));
      return answer;
    };
    try {
      throw;
    } catch (const DeviceLost& e) {
      return told(Failure::lost, e.what());
    } catch (const Unsupported& e) {
      return told(Failure::unsupported, e.what());
    } catch (const ProgramError& e) {
      return told(Failure::program, e.what());
    } catch (const std::bad_alloc&) {
      return told(Failure::memory, "out of memory");
    } catch (const std::exception& e) {
      return told(Failure::error, e.what());
    }
  }

  void act(Request request, MessageReader& message, MessageWriter& answer) {
    switch (request) {
      case Request::hello: return hello(answer);
      case Request::describe: return describe(answer);
      case Request::open: return open(message);
      case Request::close: sets_.erase(message.get<std::uint64_t>()); return;
      case Request::allocate: answer.put(memory_.add(device().allocate(message.get<std::uint64_t>()))); return;
      case Request::release: return release(message);
      case Request::runs:
      case Request::write:
      case Request::read:
      case Request::fill:
      case Request::copy:
      case Request::gather:
      case Request::scan:
      case Request::print: return memory_.act(request, device(), message, answer);
      case Request::keeps: {
        const OpCall call = get_call(message);
        answer.put(device().keeps(call, get_specs(message)));
        return;
      }
      case Request::plan: return plan(message, answer);
      case Request::bind: return bind(message, answer);
      case Request::offers: {
        Set& set = set_of(message);
        const OpCall call = get_call(message);
        answer.put(set.collectives->implementation(call, get_specs(message)));
        return;
      }
      case Request::join: return join(message, answer);
      case Request::run: return run(message);
      case Request::interval: return interval(message, answer);
      case Request::end: return;
    }
  }

  void hello(MessageWriter& answer) const {
    setup_.greeted();
    answer.put(protocol_version);
    answer.put(setup_.hello.build);
    answer.put(setup_.hello.host);
    answer.put(setup_.hello.pid);
    answer.put(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
    answer.put_list(setup_.hello.settings, [&answer](const auto& setting) {
      answer.put(setting.first);
      answer.put(setting.second);
    });
  }

  void describe(MessageWriter& answer) {
    put_device(answer, device().device());
    answer.put_list(device().fused_ops(), [&answer](const FusionClaim& claim) {
      answer.put(claim.kind.name);
      answer.put(claim.measured);
    });
  }

  void open(MessageReader& message) {
    const auto set = message.get<std::uint64_t>();
    const int ranks = message.get<int>();
    sets_[set] = {setup_.open_collectives(ranks), {}};
  }

  void release(MessageReader& message) {
    for (const std::uint64_t buffer : message.numbers<std::uint64_t>()) memory_.drop(buffer);
    for (const std::uint64_t plan : message.numbers<std::uint64_t>()) plans_.drop(plan);
    for (const std::uint64_t launch : message.numbers<std::uint64_t>()) launches_.drop(launch);
  }

  [[nodiscard]] Backend& device() {
    if (device_ == nullptr) device_ = setup_.open_backend();
    return *device_;
  }

  /// Ranks opened together, and the programs that process 0 has sent, at its numbers.
  struct Set {
    std::unique_ptr<RankCollectives> collectives;
    std::vector<std::unique_ptr<ServedProgram>> programs;
  };

  [[nodiscard]] Set& set_of(MessageReader& message) {
    const auto number = message.get<std::uint64_t>();
    const auto found = sets_.find(number);
    if (found == sets_.end()) throw MessageError(fmt::format("no set {} of ranks is open", number));
    return found->second;
  }

  void plan(MessageReader& message, MessageWriter& answer) {
    const OpCall call = get_call(message);
    const std::vector<TensorSpec> specs = get_specs(message);
    PlanOptions options;
    options.pinned = message.text();
    options.remembered = message.text();
    options.deterministic = message.get_bool();
    const std::unique_ptr<ResultJudge> judge = setup_.judge ? setup_.judge(call, specs) : nullptr;
    options.judge = judge.get();
    at_work_on(call);
    const Plan plan = device().plan(call, specs, options);
    answer.put(plans_.add({plan, &interned(call.label)}));
    answer.put(plan->implementation());
    answer.put(static_cast<std::uint64_t>(plan->workspace_bytes()));
    answer.put(plan->choice());
    answer.put_list(plan->rejected());
  }

  [[nodiscard]] std::vector<Tensor> tensors(MessageReader& message) {
    return message.list([&] {
      Tensor tensor{get_spec(message), nullptr};
      const Place place = get_place(message);
      tensor.data = memory_.at(place, static_cast<std::uint64_t>(tensor.spec.bytes()));
      return tensor;
    });
  }

  void bind(MessageReader& message, MessageWriter& answer) {
    const Planned& planned = plans_.at(message.get<std::uint64_t>());
    const std::vector<Tensor> bound = tensors(message);
    const Place place = get_place(message);
    const auto bytes = message.get<std::uint64_t>();
    const Workspace workspace{memory_.at(place, bytes), bytes};
    answer.put(launches_.add(std::make_shared<ServedLaunch>(
        ServedLaunch{device().bind(planned.plan, bound, workspace), planned.label, false})));
  }

  void join(MessageReader& message, MessageWriter& answer) {
    Set& set = set_of(message);
    const OpCall call = get_call(message);
    at_work_on(call);
    answer.put(launches_.add(std::make_shared<ServedLaunch>(
        ServedLaunch{set.collectives->bind(call, tensors(message)), &interned(call.label), true})));
  }

  void run(MessageReader& message) {
    Set& set = set_of(message);
    const std::shared_ptr<const ServedLaunch> launch = launches_.at(message.get<std::uint64_t>());
    const ServedProgram alone = program_of({{launch, 0}}, launch->is_collective);
    const ServedProgram* const order[] = {&alone};
    (void)lanes_.time(device(), *set.collectives, order, false);
  }

  using Steps = std::vector<std::pair<std::shared_ptr<const ServedLaunch>, std::uint64_t>>;

  static ServedProgram program_of(const Steps& steps, bool communicate) {
    ServedProgram served;
    append(served, communicate ? served.program.communication : served.program.compute, steps);
    return served;
  }
  static void append(ServedProgram& served, std::vector<LaneStep>& lane, const Steps& steps) {
    for (const auto& [launch, waits_for] : steps) {
      served.held.push_back(launch);
      lane.push_back({&launch->work, launch->label, waits_for});
    }
  }

  [[nodiscard]] Steps steps(MessageReader& message, bool communicate) {
    return message.list([&] {
      std::shared_ptr<const ServedLaunch> launch = launches_.at(message.get<std::uint64_t>());
      if (launch->is_collective != communicate) throw MessageError("program has a launch in the wrong lane");
      return std::pair(std::move(launch), message.get<std::uint64_t>());
    });
  }

  void interval(MessageReader& message, MessageWriter& answer) {
    Set& set = set_of(message);
    std::vector<std::unique_ptr<ServedProgram>>& programs = set.programs;
    if (message.get_bool()) programs.clear();
    (void)message.list([&] {
      const Steps compute = steps(message, false);
      const Steps communication = steps(message, true);
      for (const auto& [launch, waits_for] : compute) expect_step(waits_for, communication);
      for (const auto& [launch, waits_for] : communication) expect_step(waits_for, compute);
      ServedProgram& program = *programs.emplace_back(std::make_unique<ServedProgram>());
      append(program, program.program.compute, compute);
      append(program, program.program.communication, communication);
      program.program.overlaps_compute = message.get_bool();
      return 0;
    });
    std::vector<const ServedProgram*> order;
    for (const auto place : message.numbers<std::uint32_t>()) {
      if (place >= programs.size()) throw MessageError("interval names a program that was not sent");
      order.push_back(programs[place].get());
    }
    answer.put(lanes_.time(device(), *set.collectives, order, true));
  }
  static void expect_step(std::uint64_t waits_for, const Steps& other_lane) {
    if (waits_for > other_lane.size()) throw MessageError("step of a program waits for a step that does not exist");
  }

  const std::string& interned(std::string text) { return *labels_.insert(std::move(text)).first; }
  void at_work_on(const OpCall& call) { progress_.compute().begin(&interned(call.label)); }

  struct Planned {
    Plan plan;
    const std::string* label = nullptr;
  };

  Channel& channel_;
  const ServerSetup& setup_;
  std::set<std::string> labels_;
  WorkProgress progress_;
  Answerer answers_;
  std::unique_ptr<Backend> device_;
  std::map<std::uint64_t, Set> sets_;
  ServedMemory memory_;
  Numbered<Planned> plans_{"plan"};
  Numbered<std::shared_ptr<const ServedLaunch>> launches_{"launch"};
  ServedLanes lanes_;
};

}  // namespace

int serve_rank(Channel& channel, const ServerSetup& setup) { return RankServer(channel, setup).serve(); }

}  // namespace gpubench
