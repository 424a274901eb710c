// Ranks in other processes. The first N of them form a set of ranks (harness/core/communicator.h) on which the engine
// runs cases.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/processes.h"
#include "harness/remote/remote_process.h"
#include "harness/remote/requests.h"
#include "harness/remote/stall_watch.h"

namespace gpubench {

/// Property of a device that has fewer processors than processes that share them.
inline constexpr const char* oversubscribed_property = "oversubscribed";

/// When and how process 0 reports processes that have not answered its hello.
struct Greeting {
  std::vector<std::string> hosts = {};  ///< of each rank; empty: unknown
  double note_s = 0.0;                  ///< the time after which `note` gets their names; 0: never
  std::function<void(const std::string& text)> note = {};
};

class RemoteRanks {
 public:
  /// `channels`: one to serve_rank() in the process of each rank; rank 0 may be a thread of this process. They must
  /// outlive this and all that it opens. `own`: the hello of this process. `limit_s`: the longest silence of a process;
  /// 0: no limit. Throws, naming the process: BackendError if its build or libraries differ, it cannot open its device,
  /// or it shares a GPU; UsageError if its settings differ; DeviceLost if it does not answer.
  RemoteRanks(std::vector<Channel*> channels, const Hello& own, double limit_s, const Greeting& greeting = {});

  [[nodiscard]] int ranks() const { return static_cast<int>(processes_.size()); }
  /// Differences that do not prevent a run: hosts, clocks, processors.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] const std::vector<RankPlace>& places() const { return places_; }

  /// The first `ranks` of them. Throws Unsupported if there are fewer.
  [[nodiscard]] RankSet open(int ranks);

  /// Whether a process is lost: then no request is possible, and the caller must not wait for any process.
  [[nodiscard]] bool lost() const { return !watch_->lost().empty(); }
  /// Ends serve_rank() in all processes with this exit code.
  void end(int code);

 private:
  void greet(std::span<Channel* const> channels, const Hello& own, double limit_s, const Greeting& greeting);
  void compare_devices();

  std::shared_ptr<StallWatch> watch_;
  std::vector<std::shared_ptr<RemoteProcess>> processes_;
  std::vector<RankPlace> places_;
  std::vector<std::string> notes_;
  std::uint64_t sets_ = 0;
};

}  // namespace gpubench
