// The lanes of a rank in another process. A program is sent on its first run; later intervals send only its number.
// The request and its answer are outside the measured time.
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/remote/remote_backend.h"

namespace gpubench {
namespace {

constexpr std::size_t max_programs = 256;  // kept by the other process

class RemoteQueues final : public RankQueues {
 public:
  explicit RemoteQueues(RemoteRank rank) : rank_(std::move(rank)) {}

  void enqueue(const RankProgram& program, const At& at) override {
    at_ = at;
    const auto [known, fresh] = of_interval_.try_emplace(&program, 0);
    if (fresh) known->second = number_of(program);
    order_.push_back(known->second);
    at(label_of(program));
  }

  void begin() override {
    order_.clear();
    of_interval_.clear();
    // Sent programs would keep released launches alive.
    const std::uint64_t releases = rank_.process->releases();
    if (releases == seen_releases_ && programs_.size() < max_programs) return;
    seen_releases_ = releases;
    programs_.clear();
    forget_ = true;
  }

  [[nodiscard]] double end() override {
    MessageWriter request = RemoteProcess::request(Request::interval);
    request.put(rank_.set);
    request.put(std::exchange(forget_, false));
    request.put_list(std::exchange(to_send_, {}), [&request](const Steps& steps) {
      for (const Lane& lane : steps.lanes)
        request.put_list(lane, [&request](const auto& step) {
          request.put(step.first);
          request.put(step.second);
        });
      request.put(steps.overlaps_compute);
    });
    request.put_list(order_);
    const std::vector<std::byte> answer =
        rank_.process->ask(request, [this](const Heartbeat& beat) { at_(*labels_.insert(beat.label).first); });
    return MessageReader(answer).get<double>();
  }

 private:
  using Lane = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // launch, steps of the other lane to wait for
  struct Steps {
    std::array<Lane, 2> lanes;  // compute, communication
    bool overlaps_compute = false;
    friend auto operator<=>(const Steps&, const Steps&) = default;
  };

  std::uint32_t number_of(const RankProgram& program) {
    Steps steps{{}, program.overlaps_compute};
    for (const LaneStep& step : program.compute) {
      const auto* work = dynamic_cast<const RemoteLaunch*>(step.work->get());
      if (work == nullptr) refuse(*step.label);
      steps.lanes[0].emplace_back(work->number(), step.waits_for);
    }
    for (const LaneStep& step : program.communication) {
      const auto* work = dynamic_cast<const RemoteCollective*>(step.work->get());
      if (work == nullptr) refuse(*step.label);
      steps.lanes[1].emplace_back(work->of(rank_.process->rank()).number(), step.waits_for);
    }
    const auto [known, fresh] = programs_.try_emplace(steps, static_cast<std::uint32_t>(programs_.size()));
    if (fresh) to_send_.push_back(std::move(steps));
    return known->second;
  }
  [[noreturn]] static void refuse(const std::string& label) {
    throw BackendError(
        fmt::format("launch of '{}' belongs to another backend; expected one bound by these ranks", label));
  }
  static const std::string& label_of(const RankProgram& program) {
    static const std::string nothing = "nothing";
    if (!program.compute.empty()) return *program.compute.front().label;
    return program.communication.empty() ? nothing : *program.communication.front().label;
  }

  RemoteRank rank_;
  At at_;
  std::map<const RankProgram*, std::uint32_t> of_interval_;
  std::map<Steps, std::uint32_t> programs_;
  std::vector<Steps> to_send_;
  std::vector<std::uint32_t> order_;
  std::set<std::string> labels_;  // of beats; must outlive the interval
  std::uint64_t seen_releases_ = 0;
  bool forget_ = false;
};

}  // namespace

std::unique_ptr<RankQueues> open_remote_queues(RemoteRank rank) {
  return std::make_unique<RemoteQueues>(std::move(rank));
}

}  // namespace gpubench
