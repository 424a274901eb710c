// Several ranks as one backend: every op runs on the thread of its rank, a collective on the threads of its members,
// and a sequence is split into one program per rank. On each rank a sequence has two lanes, compute and communication,
// which run concurrently: a collective waits for the ops that produce its inputs, and an op waits for a collective only
// if it reads or overwrites the same data.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/mesh.h"
#include "harness/run/forwarding_backend.h"

namespace gpubench {

/// A rank without progress for `stall_limit_s`, or `plan_limit_s` while it plans an op, is lost: calls throw
/// DeviceLost. Throws BackendError for a set without ranks.
[[nodiscard]] std::unique_ptr<Backend> open_rank_group(RankSet ranks, double stall_limit_s = 15.0,
                                                       double plan_limit_s = 30.0);

/// The threads of ranks. Reports errors and hangs with the rank and its op.
class RankThreads {
 public:
  struct Hooks {
    std::function<void(int rank)> enter;          ///< called once at the start of each thread
    std::function<void()> stop;                   ///< ends all waits between ranks after a failure
    std::function<bool()> restart;                ///< allows waits again; false if that is impossible
    std::function<std::vector<int>()> waiting{};  ///< ranks that wait for a peer within a collective
  };
  /// `lanes` threads for each rank; thread t is of rank t mod `ranks`. No progress for `stall_limit_s` is a hang.
  RankThreads(int ranks, int lanes, double stall_limit_s, Hooks hooks);
  /// Detaches threads that hang.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  /// Runs work(thread) on every thread and waits. Throws BackendError with the error of the first rank that failed:
  /// "rank 1: <its error> (in 'bucket0')". Throws DeviceLost, in all later calls too, if that error was one, if restart
  /// fails, or if a rank hangs: "rank 1 has made no progress for 15 s, last in 'bucket0'; ranks 0, 2 were waiting".
  /// Unsupported and ProgramError pass unchanged.
  void on_all(const std::function<void(int thread)>& work);
  /// The same on the first thread of one rank. `stall_limit_s`: the limit for this call, if longer.
  void on_one(int rank, const std::function<void()>& work, double stall_limit_s = 0.0);

  enum class State { idle, working, collective, waiting };
  /// Called by one of the threads: its activity from now on. `what` must outlive the work.
  void at(State state, const std::string& what);

  /// Whether a thread was detached. It may continue later, so everything that its work uses must stay alive.
  [[nodiscard]] bool hangs() const;

 private:
  struct Shared;
  void wait_and_judge(int first, int last, double stall_limit_s);
  std::shared_ptr<Shared> shared_;
};

struct RankOp {
  RankGroup members;  ///< one rank, or the members of a collective
  std::string label;
  [[nodiscard]] bool is_collective() const { return members.size() > 1; }
};

struct GroupPlan : ForwardingPlan {
  GroupPlan(Plan of, RankOp rank_op) : ForwardingPlan(std::move(of)), op(std::move(rank_op)) {}
  RankOp op;
};

struct GroupLaunch : LaunchImpl {
  GroupLaunch(Launch work, RankOp rank_op) : inner(std::move(work)), op(std::move(rank_op)) {}
  Launch inner;
  RankOp op;
};

class GroupSequence : public LaunchImpl {
 public:
  GroupSequence(std::vector<Launch> held, std::vector<RankProgram> programs)
      : held_(std::move(held)), programs_(std::move(programs)) {}
  [[nodiscard]] const RankProgram& of(int rank) const { return programs_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<Launch> held_;
  std::vector<RankProgram> programs_;
};

/// By rank: its part of the sequence. Collectives are only in the lanes of their members, in the same order on all.
/// Throws BackendError for a launch that is not a GroupLaunch of these ranks.
[[nodiscard]] std::vector<RankProgram> rank_programs(std::span<const Launch> launches, const Schedule& schedule,
                                                     int ranks);

/// The two lanes of a rank whose device is the host, a thread for each. Ranks whose devices have queues use RankQueues.
class HostLanes {
 public:
  struct Hooks {
    std::function<void(const LaneStep& step)> compute;      ///< runs a step in the compute lane
    std::function<void(const LaneStep& step)> communicate;  ///< runs a step in the communication lane
    std::function<void()> waiting;                          ///< called before a lane waits for the other
  };
  explicit HostLanes(Hooks hooks) : hooks_(std::move(hooks)) {}

  /// Called by the compute lane: one run of both lanes, complete on return.
  void run(const RankProgram& program);
  /// Called by the compute lane after the last run.
  void finish();
  /// Called by the communication lane: runs its steps of every run until finish().
  void serve();

  /// Makes every wait, now or later, throw RanksStopped. Any thread may call it.
  void stop();
  /// Makes the lanes usable again; no thread may be in any of the functions above.
  void reset();

 private:
  void await(const Progress& progress, std::uint64_t goal) const;

  Hooks hooks_;
  Progress begun_;     // runs
  Progress computed_;  // steps, of all runs
  Progress communicated_;
  std::atomic<const RankProgram*> program_{nullptr};  // of the current run; null after the last
  std::uint64_t computed_before_ = 0;                 // steps of all earlier runs
  std::uint64_t communicated_before_ = 0;
};

}  // namespace gpubench
