// The threads of ranks, and a watch over them: what fails or hangs there is told with the rank and what it was at.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "harness/core/communicator.h"

namespace gpubench {

class RankThreads {
 public:
  struct Hooks {
    std::function<void(int rank)> enter;          ///< called once on each thread first
    std::function<void()> stop;                   ///< ends all waits of ranks for each other, as one has failed
    std::function<bool()> restart;                ///< makes them possible again; false where nothing can
    std::function<std::vector<int>()> waiting{};  ///< ranks that wait for a peer within a collective
  };
  /// `lanes` threads for each rank: thread t belongs to rank t mod `ranks`. Where none comes any further for
  /// `stall_limit_s`, one is taken to hang.
  RankThreads(int ranks, int lanes, double stall_limit_s, Hooks hooks);
  /// Threads that hang are left behind.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  /// Runs work(thread) on every thread and waits. Throws BackendError: "rank 1: <its error> (in 'bucket0')", of the
  /// first rank that failed; DeviceLost where that was one, where nothing can run after it, and where a rank hangs:
  /// "rank 1 has come no further for 15 s, last in 'bucket0'; ranks 0, 2 were waiting". After that every call throws it
  /// again. Unsupported and ProgramError pass as they are.
  void on_all(const std::function<void(int thread)>& work);
  /// The same on the first thread of one rank.
  void on_one(int rank, const std::function<void()>& work);

  enum class State { idle, working, collective, waiting };
  /// Called by one of the threads: what it is at from now on. The text must outlive the work.
  void at(State state, const std::string& what);

  /// Whether a thread was given up on. It may wake up: what its work uses must stay, whoever called has gone on.
  [[nodiscard]] bool hangs() const;

 private:
  struct Shared;
  void wait_and_judge(int first, int last);
  std::shared_ptr<Shared> shared_;
};

}  // namespace gpubench
