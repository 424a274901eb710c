// Ranks in other processes: each is asked who it is, and any of the first of them make a group of ranks
// (harness/run/rank_group.h) that the engine runs cases on as on any other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/processes.h"
#include "harness/remote/protocol.h"
#include "harness/remote/remote_process.h"
#include "harness/remote/stall_watch.h"

namespace gpubench {

/// Of a device that has fewer processors than the processes that share them.
inline constexpr const char* oversubscribed_property = "oversubscribed";

class RemoteRanks {
 public:
  /// `channels`: to the process of each rank, where serve_rank() answers; that of rank 0 may be a thread of this
  /// process. They must outlive this and all that it opens. `own`: who this process is. `limit_s`: how long one may be
  /// silent; 0: for ever. Throws BackendError that names the process where one is of another build, has other
  /// libraries, or cannot open its device; DeviceLost where one does not answer.
  RemoteRanks(std::vector<Channel*> channels, const Hello& own, double limit_s);

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
  void compare_devices();

  std::shared_ptr<StallWatch> watch_;
  std::vector<std::shared_ptr<RemoteProcess>> processes_;
  std::vector<RankPlace> places_;
  std::vector<std::string> notes_;
  std::uint64_t sets_ = 0;
};

}  // namespace gpubench
