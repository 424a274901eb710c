#include "harness/remote/rank_server.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/row_view.h"
#include "harness/remote/call_message.h"
#include "harness/remote/served_lanes.h"

namespace gpubench {
namespace {

constexpr double receive_s = 3600.0;  // then again: there is no limit to how long process 0 may do without us

/// Sends on behalf of two threads, one of which only beats while the other is at work.
class Answerer {
 public:
  Answerer(Channel& channel, const WorkProgress& progress)
      : channel_(channel), progress_(progress), beating_([this] { beat(); }) {}
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;
  ~Answerer() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    beating_.join();
  }

  void begin() {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  void answer(const MessageWriter& message) {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    channel_.send(message.bytes());
  }
  /// The request has no answer.
  void say_nothing() {
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }

 private:
  void beat() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::duration<double>(beat_every_s), [this] { return ending_; })) {
      if (!busy_) continue;
      const Beat beat = progress_.beat();
      MessageWriter message;
      message.put(Answer::beat);
      message.put(beat.steps);
      message.put(beat.waits);
      message.put(beat.label);
      try {
        channel_.send(message.bytes());
      } catch (const std::exception&) {
        return;  // the thread that answers meets the same error, and tells
      }
    }
  }

  Channel& channel_;
  const WorkProgress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread beating_;  // last: uses all of the above
};

/// Things that the other side knows by number. No number is used twice.
template <class Thing>
class Numbered {
 public:
  explicit Numbered(std::string what) : what_(std::move(what)) {}
  [[nodiscard]] std::uint64_t add(Thing thing) {
    things_.emplace(++last_, std::move(thing));
    return last_;
  }
  [[nodiscard]] Thing& at(std::uint64_t number) {
    const auto found = things_.find(number);
    if (found == things_.end()) throw MessageError(fmt::format("there is no {} {} here", what_, number));
    return found->second;
  }
  void drop(std::uint64_t number) { things_.erase(number); }

 private:
  std::string what_;
  std::map<std::uint64_t, Thing> things_;
  std::uint64_t last_ = 0;
};

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
      request == Request::release ? answers_.say_nothing() : answers_.answer(answer);
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
      case Request::allocate: answer.put(buffers_.add(device().allocate(message.get<std::uint64_t>()))); return;
      case Request::release: return release(message);
      case Request::runs: return runs(message, answer);
      case Request::write:
      case Request::read:
      case Request::fill:
      case Request::copy:
      case Request::gather:
      case Request::scan:
      case Request::print: return act_on_memory(request, message, answer);
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
    answer.put(protocol_version);
    answer.put(setup_.hello.build);
    answer.put(setup_.hello.host);
    answer.put(setup_.hello.pid);
    answer.put(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
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
    for (const std::uint64_t buffer : message.numbers<std::uint64_t>()) buffers_.drop(buffer);
    for (const std::uint64_t plan : message.numbers<std::uint64_t>()) plans_.drop(plan);
    for (const std::uint64_t launch : message.numbers<std::uint64_t>()) launches_.drop(launch);
  }

  [[nodiscard]] Backend& device() {
    if (device_ == nullptr) device_ = setup_.open_backend();
    return *device_;
  }

  /// Ranks that were opened together, and the programs that process 0 counts as sent to them.
  struct Set {
    std::unique_ptr<RankCollectives> collectives;
    std::vector<std::unique_ptr<ServedProgram>> programs;
  };

  [[nodiscard]] Set& set_of(MessageReader& message) {
    const auto number = message.get<std::uint64_t>();
    const auto found = sets_.find(number);
    if (found == sets_.end()) throw MessageError(fmt::format("there is no set {} of ranks here", number));
    return found->second;
  }

  /// The address of `bytes` bytes from a place; null of none.
  [[nodiscard]] std::byte* at(const Place& place, std::uint64_t bytes) {
    if (place.buffer == 0) return nullptr;
    const Buffer& buffer = buffers_.at(place.buffer);
    if (place.offset > buffer.bytes() || bytes > buffer.bytes() - place.offset)
      throw MessageError(
          fmt::format("{} bytes from {} on are asked for, of a buffer of {}", bytes, place.offset, buffer.bytes()));
    return buffer.data() + place.offset;
  }
  /// Of what is sent or examined, which cannot be nowhere.
  [[nodiscard]] std::byte* really_at(const Place& place, std::uint64_t bytes) {
    if (place.buffer == 0) throw MessageError("memory is asked for that is in no buffer");
    return at(place, bytes);
  }

  void act_on_memory(Request request, MessageReader& message, MessageWriter& answer) {
    const Place place = get_place(message);
    if (request == Request::write) {
      const std::span<const std::byte> bytes = message.bytes();
      device().write(really_at(place, bytes.size()), bytes);
    } else if (request == Request::read) {
      std::vector<std::byte> bytes(expect_piece(message.get<std::uint64_t>()));
      device().read(bytes, really_at(place, bytes.size()));
      answer.put(std::span<const std::byte>(bytes));
    } else if (request == Request::fill) {
      const std::span<const std::byte> pattern = message.bytes();
      const auto count = message.get<std::uint64_t>();
      device().fill(really_at(place, count), pattern, count);
    } else if (request == Request::copy) {
      const Place from = get_place(message);
      const auto count = message.get<std::uint64_t>();
      device().copy(really_at(place, count), really_at(from, count), count);
    } else if (request == Request::gather) {
      gather(place, message, answer);
    } else if (request == Request::scan) {
      scan(place, message, answer);
    } else {
      const auto count = message.get<std::uint64_t>();
      answer.put(device().fingerprint(really_at(place, count), count));
    }
  }

  static std::uint64_t expect_piece(std::uint64_t bytes) {
    if (bytes > most_piece_bytes)
      throw MessageError(fmt::format("{} bytes are asked for at a time; at most {} can be", bytes, most_piece_bytes));
    return bytes;
  }

  void runs(MessageReader& message, MessageWriter& answer) {
    const auto run = message.get<std::uint64_t>();
    if (run > most_piece_bytes) throw MessageError("a run of bytes is longer than a message");
    const std::vector<const std::byte*> from =
        message.list([&]() -> const std::byte* { return really_at(get_place(message), run); });
    std::vector<std::byte> bytes(expect_piece(run * from.size()));
    device().read_runs(bytes, from);
    answer.put(std::span<const std::byte>(bytes));
  }

  void gather(const Place& place, MessageReader& message, MessageWriter& answer) {
    const auto run = message.get<std::uint64_t>();
    const std::vector<std::int64_t> offsets = message.numbers<std::int64_t>();
    if (run > most_piece_bytes) throw MessageError("a run of bytes is longer than a message");
    for (const std::int64_t offset : offsets) {
      const std::uint64_t from = place.offset + static_cast<std::uint64_t>(offset);  // below 0 wraps, and is refused
      (void)really_at({place.buffer, from}, run);
    }
    std::vector<std::byte> bytes(expect_piece(run * offsets.size()));
    device().gather(bytes, really_at(place, 0), offsets);
    answer.put(std::span<const std::byte>(bytes));
  }

  void scan(const Place& place, MessageReader& message, MessageWriter& answer) {
    const auto type = message.get<DType>();
    RowView rows;
    for (std::int64_t* number : {&rows.rows, &rows.columns, &rows.stride}) *number = message.get<std::int64_t>();
    for (const std::int64_t number : {rows.rows, rows.columns, rows.stride}) {
      if (number < 0 || number > most_tensor_bytes) throw MessageError("rows of a scan that cannot be");
    }
    const double last = static_cast<double>(rows.rows) * static_cast<double>(std::max(rows.stride, rows.columns));
    if (last > static_cast<double>(most_tensor_bytes)) throw MessageError("a scan of more than any tensor has");
    const std::int64_t span = rows.elements() == 0 ? 0 : (rows.rows - 1) * rows.stride + rows.columns;
    const std::byte* data = really_at(place, static_cast<std::uint64_t>(bytes_of(type, span)));
    const auto count = static_cast<std::size_t>(scan_chunks(rows.elements()));
    if (count * sizeof(ChunkScan) > most_message_bytes) throw MessageError("a scan of more than a message can tell");
    std::vector<ChunkScan> chunks(count);
    device().scan(chunks, data, type, rows);
    answer.put(std::as_bytes(std::span(chunks)));
  }

  void plan(MessageReader& message, MessageWriter& answer) {
    const OpCall call = get_call(message);
    const std::vector<TensorSpec> specs = get_specs(message);
    PlanOptions options;
    options.pinned = message.text();
    options.remembered = message.text();
    options.deterministic = message.get_bool();
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
      tensor.data = at(place, static_cast<std::uint64_t>(tensor.spec.bytes()));
      return tensor;
    });
  }

  void bind(MessageReader& message, MessageWriter& answer) {
    const Planned& planned = plans_.at(message.get<std::uint64_t>());
    const std::vector<Tensor> bound = tensors(message);
    const Place place = get_place(message);
    const auto bytes = message.get<std::uint64_t>();
    const Workspace workspace{at(place, bytes), bytes};
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
      if (launch->is_collective != communicate) throw MessageError("a launch is in the wrong lane of a program");
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
      return 0;
    });
    std::vector<const ServedProgram*> order;
    for (const auto place : message.numbers<std::uint32_t>()) {
      if (place >= programs.size()) throw MessageError("an interval has a program that was not sent");
      order.push_back(programs[place].get());
    }
    answer.put(lanes_.time(device(), *set.collectives, order, true));
  }
  static void expect_step(std::uint64_t waits_for, const Steps& other_lane) {
    if (waits_for > other_lane.size()) throw MessageError("a step of a program waits for one that there is not");
  }

  /// The same text, which lives as long as this.
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
  Numbered<Buffer> buffers_{"buffer"};
  Numbered<Planned> plans_{"plan"};
  Numbered<std::shared_ptr<const ServedLaunch>> launches_{"launch"};
  ServedLanes lanes_;
};

}  // namespace

int serve_rank(Channel& channel, const ServerSetup& setup) { return RankServer(channel, setup).serve(); }

}  // namespace gpubench
