// What is known of a soak: of each device what it has done and found, of several of them what their votes said. It is
// fed finding by finding, from children, from this process or from a journal, so that a soak that was killed says as
// much as it had noted down. And one soak from its start to its summary (soak_run.cpp): where its devices are, and the
// parent of their processes, which hears what they find, lets them vote, notes it down and shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/cli/verb_output.h"
#include "harness/cli/verb_work.h"
#include "harness/core/text/text_table.h"
#include "harness/report/line_journal.h"
#include "harness/verify/soak.h"

namespace gpubench {

struct SoakingDevice {
  std::string word;  ///< as --device takes it: "cuda:1"; of shares of the processors "cpu share 1, 4 processors"
  DeviceInfo info{};
  SoakResult result{};
  std::string trouble{};  ///< why its process came to a bad end; empty where it did not
};

class SoakBook {
 public:
  SoakBook() = default;
  explicit SoakBook(std::span<const std::string> words) {
    for (const std::string& word : words) devices_.push_back({word});
  }

  /// "opened", "cases", "interval", "divergence", "wrong" or "recheck", as soak_findings() tells them. Throws
  /// ReadError.
  void take(std::size_t device, const WorkFinding& finding);
  void add_vote(std::string text);
  void add_trouble(std::size_t device, std::string text) { devices_.at(device).trouble = std::move(text); }
  /// Judged launches that several devices left, and what of it was compared with nobody's.
  void set_voted(std::int64_t launches, const std::set<std::string>& not_compared) {
    voted_ = launches;
    not_compared_.assign(not_compared.begin(), not_compared.end());
  }

  /// How long it was to take.
  void set_requested(double seconds) { requested_s_ = seconds; }
  void set_interrupted() { interrupted_ = true; }
  /// It was killed, or still runs.
  void set_unended() { has_ended_ = false; }

  [[nodiscard]] std::span<const SoakingDevice> devices() const { return devices_; }
  /// All devices together; without intervals.
  [[nodiscard]] SoakResult total() const;
  /// No fault was found, as far as it came.
  [[nodiscard]] bool passed() const { return total().passed() && disagreements_ == 0; }
  /// In seconds that every device has screened.
  [[nodiscard]] Completion completion() const;
  [[nodiscard]] bool has_trouble() const;
  /// Launches, findings of the textbook and votes that say something is wrong.
  [[nodiscard]] std::int64_t faults() const;

  /// For people; `style`: of the stream.
  [[nodiscard]] std::string summary(const ConsoleStyle& style) const;
  /// The document that --json writes, but for its head.
  [[nodiscard]] Json json() const;
  /// Speed, clocks and temperature over time, and when something went wrong, as SVG; empty where nothing has run.
  [[nodiscard]] std::string chart() const;

 private:
  [[nodiscard]] std::string device_lines(std::size_t device, const ConsoleStyle& style) const;

  std::vector<SoakingDevice> devices_;
  std::vector<std::string> votes_;  ///< the first hundred
  std::int64_t disagreements_ = 0;
  std::int64_t voted_ = 0;
  double requested_s_ = 0.0;
  bool interrupted_ = false;
  bool has_ended_ = true;
  std::vector<std::string> not_compared_;
};

/// The observer that tells a soak's findings, those that SoakBook takes and "judged", which votes take.
[[nodiscard]] SoakObserver soak_findings(const WorkFindings& findings);

/// "1.5 s: CASE: TEXT · 64 C · 1,980 MHz · 2 corrected and 0 uncorrected memory errors (1 and 0 before)".
[[nodiscard]] std::string divergence_text(const Divergence& divergence);
/// " · 64 C · 1,980 MHz": what the device tells.
[[nodiscard]] std::string sensors_text(const std::optional<RoundTelemetry>& telemetry);

/// A soak's journal. Its lines are "start", the findings above with their device's number, "vote", "lost" and "end".
inline constexpr std::string_view soak_schema = "gpubench-soak";
inline constexpr int soak_schema_version = 2;

struct SoakRead {
  SoakBook book;
  std::string version;    ///< of the program that wrote it
  std::uint64_t seed = 0;
  bool ended = false;  ///< else it was killed, or still runs
};
/// Throws ReadError.
[[nodiscard]] SoakRead read_soak(const std::string& path);

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
