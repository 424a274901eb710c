// State and run of a soak. It is fed by findings from children, this process or a journal, so a killed soak keeps what
// it recorded. soak_run.cpp has the parent of its processes.
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
  std::string word;  ///< value of --device: "cuda:1"; for shares of the processors "cpu share 1, 4 processors"
  DeviceInfo info{};
  SoakResult result{};
  std::string trouble{};  ///< why its process failed; empty: it did not
};

class SoakLog {
 public:
  SoakLog() = default;
  explicit SoakLog(std::span<const std::string> words) {
    for (const std::string& word : words) devices_.push_back({word});
  }

  /// "opened", "cases", "interval", "divergence", "wrong" or "recheck" of soak_findings(). Throws ReadError.
  void take(std::size_t device, const WorkFinding& finding);
  void add_vote(std::string text);
  void add_trouble(std::size_t device, std::string text) { devices_.at(device).trouble = std::move(text); }
  /// `launches`: judged ones that several devices made. `not_compared`: why others were not compared.
  void set_voted(std::int64_t launches, const std::set<std::string>& not_compared) {
    voted_ = launches;
    not_compared_.assign(not_compared.begin(), not_compared.end());
  }

  void set_requested(double seconds) { requested_s_ = seconds; }
  void set_interrupted() { interrupted_ = true; }
  /// The soak was killed, or still runs.
  void set_unended() { has_ended_ = false; }

  [[nodiscard]] std::span<const SoakingDevice> devices() const { return devices_; }
  /// Sum over devices, without intervals.
  [[nodiscard]] SoakResult total() const;
  /// No fault was found so far.
  [[nodiscard]] bool passed() const { return total().passed() && disagreements_ == 0; }
  /// In seconds that every device has screened.
  [[nodiscard]] Completion completion() const;
  [[nodiscard]] bool has_trouble() const;
  /// Wrong launches, findings of the textbook, and votes with a disagreement.
  [[nodiscard]] std::int64_t faults() const;

  [[nodiscard]] std::string summary(const ConsoleStyle& style) const;
  /// The document of --json without its head.
  [[nodiscard]] Json json() const;
  [[nodiscard]] std::string chart() const;

 private:
  [[nodiscard]] std::string device_lines(std::size_t device, const ConsoleStyle& style) const;

  std::vector<SoakingDevice> devices_;
  std::vector<std::string> votes_;  ///< at most a hundred
  std::int64_t disagreements_ = 0;
  std::int64_t voted_ = 0;
  double requested_s_ = 0.0;
  bool interrupted_ = false;
  bool has_ended_ = true;
  std::vector<std::string> not_compared_;
};

/// Reports what SoakLog::take() accepts, and "judged" for votes.
[[nodiscard]] SoakObserver soak_findings(const WorkFindings& findings);

/// "1.5 s: CASE: TEXT · 64 C · 1,980 MHz · 2 corrected and 0 uncorrected memory errors (1 and 0 before)".
[[nodiscard]] std::string divergence_text(const Divergence& divergence);
[[nodiscard]] std::string sensors_text(const std::optional<RoundTelemetry>& telemetry);

/// A soak's journal. Lines: "start", findings with the number of their device, "vote", "lost", "end".
inline constexpr std::string_view soak_schema = "gpubench-soak";
inline constexpr int soak_schema_version = 2;

struct SoakRead {
  SoakLog book;
  std::string version;
  std::uint64_t seed = 0;
  bool ended = false;  ///< else it was killed, or still runs
};
/// Throws ReadError.
[[nodiscard]] SoakRead read_soak(const std::string& path);

struct SoakOptions {
  double minutes = 5.0;
  std::string journal;
  std::string read_journal;          ///< journal of an earlier soak; empty: run a new one
  std::vector<std::string> devices;  ///< a number of devices, or names; empty: one
};

/// One of several devices: its --device, and its exclusive processors.
struct SoakPlace {
  std::string device;
  std::string word;    ///< display name
  int processors = 0;  ///< 0: all
  int skipped = 0;     ///< number of processors before those
};

/// The devices of --devices; without it `device`. Throws UsageError.
[[nodiscard]] std::vector<SoakPlace> soak_places(const Options& options, const DeviceChoice& device,
                                                 const Environment& environment);

class SoakRun {
 public:
  /// Both must outlive it.
  SoakRun(const Options& options, const Environment& environment, std::span<const SoakPlace> places);

  /// For --journal. Throws UsageError.
  void open_journal(std::uint64_t seed, std::span<const PlannedCase> cases);
  /// Takes a finding of a device. Throws ReadError.
  void take(std::size_t device, const Json& json);
  /// `trouble`: why the process failed, else empty.
  void ended(std::size_t device, std::string trouble);
  /// `now`: shown until the first launch.
  void show(const std::string& now);
  /// Call once, last.
  [[nodiscard]] SoakLog finish();

 private:
  void react(std::size_t device, const WorkFinding& finding);
  void print_votes(const std::vector<std::string>& votes);
  void print_fault(const std::string& text);
  void tell(const std::string& text);
  void append_note(const std::string& what, Json content);

  const Options& options_;
  const SoakOptions& own_;
  const Environment& environment_;
  std::vector<std::string> words_;
  SoakLog log_;
  SoakVote vote_;
  StatusLine status_;
  std::string shown_;
  std::optional<LineJournal> journal_;
  std::map<std::size_t, std::string> errors_;  ///< by device: the error that ended its work
  std::int64_t told_ = 0;
};

}  // namespace gpubench
