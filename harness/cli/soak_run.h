// One soak from its start to its summary: where its devices are, and the parent of their processes, which hears what
// they find, lets them vote, notes it down and shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/cli/soak_book.h"
#include "harness/cli/verb_output.h"
#include "harness/report/line_journal.h"
#include "harness/verify/soak_vote.h"

namespace gpubench {

/// The options of soak alone.
struct SoakOptions {
  double minutes = 5.0;
  std::string journal;               ///< file; empty: none
  std::string read_journal;          ///< of a soak that was; empty: there is to be one
  std::vector<std::string> devices;  ///< a number of devices, or several names; empty: one
};

/// Where one of several devices is: its --device, and the processors that it shares with none.
struct SoakPlace {
  std::string device;  ///< DeviceChoice::word()
  std::string word;    ///< for people
  int processors = 0;  ///< 0: all
  int skipped = 0;     ///< of the processors, before those
};

/// Those that --devices names; `device` alone without it. Throws UsageError.
[[nodiscard]] std::vector<SoakPlace> soak_places(const Options& options, const DeviceChoice& device,
                                                 const Environment& environment);

class SoakRun {
 public:
  /// Both must outlive it.
  SoakRun(const Options& options, const Environment& environment, std::span<const SoakPlace> places);

  /// With --journal. Throws UsageError.
  void open_journal(std::uint64_t seed, std::span<const PlannedCase> cases);
  /// Takes what a device has found. Throws ReadError.
  void take(std::size_t device, const Json& json);
  /// A device's process has ended; why, where that was no good end.
  void ended(std::size_t device, std::string trouble);
  /// Shows how it goes; `now`: what is done while nothing has been launched.
  void show(const std::string& now);
  /// Ends the journal. Call once, last.
  [[nodiscard]] SoakBook finish();

 private:
  void react(std::size_t device, const WorkFinding& finding);
  void tell_votes(const std::vector<std::string>& votes);
  void tell_fault(const std::string& text);
  void tell(const std::string& text);
  void note_down(const std::string& what, Json content);

  const Options& options_;
  const SoakOptions& own_;
  const Environment& environment_;
  std::vector<std::string> words_;  ///< of the places
  SoakBook book_;
  SoakVote vote_;
  StatusLine status_;
  std::string shown_;
  std::optional<LineJournal> journal_;
  std::map<std::size_t, std::string> errors_;  ///< by device: what ended its work
  std::int64_t told_ = 0;
};

}  // namespace gpubench
