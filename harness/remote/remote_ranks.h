// Ranks in other processes: each is asked who it is, and any of the first of them make a group of ranks
// (harness/run/rank_group.h) that the engine runs cases on as on any other.
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

/// Of a device that has fewer processors than the processes that share them.
inline constexpr const char* oversubscribed_property = "oversubscribed";

/// When and how process 0 reports processes that have not answered its hello.
struct Greeting {
  std::vector<std::string> hosts = {};  ///< of each rank; empty: unknown
  double note_s = 0.0;                  ///< the time after which `note` gets their names; 0: never
  std::function<void(const std::string& text)> note = {};
};

class RemoteRanks {
 public:
  /// `channels`: to the process of each rank, where serve_rank() answers; that of rank 0 may be a thread of this
  /// process. They must outlive this and all that it opens. `own`: who this process is. `limit_s`: how long one may be
  /// silent; 0: for ever. Throws BackendError that names the process where one is of another build, has other
  /// libraries, or cannot open its device; UsageError where one has other settings; DeviceLost where one does not
  /// answer.
  RemoteRanks(std::vector<Channel*> channels, const Hello& own, double limit_s, const Greeting& greeting = {});

  [[nodiscard]] int ranks() const { return static_cast<int>(processes_.size()); }
  /// What differs between them and is worth a word: hosts, clocks, processors.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// Where each of them is.
  [[nodiscard]] const std::vector<RankPlace>& places() const { return places_; }

  /// The first `ranks` of them. Throws Unsupported where there are not so many.
  [[nodiscard]] RankSet open(int ranks);

  /// Whether one is lost: nothing can be asked any more, and no process may be waited for.
  [[nodiscard]] bool lost() const { return !watch_->lost().empty(); }
  /// Ends serve_rank() in all of them, with this exit code.
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
