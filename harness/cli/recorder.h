// Keeps the records of a run: in memory for its report, in its journal for --resume, anonymous with --anonymize.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/core/record.h"
#include "harness/plan/plan.h"
#include "harness/report/anonymize.h"
#include "harness/report/journal.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "harness/run/run.h"

namespace gpubench {

/// Passes everything on to what the user watches; records are compared with the device's ceilings first, so that an
/// impossible rate is never shown as a pass.
class Recorder final : public RunObserver {
 public:
  /// `journal`: null for none. All must outlive the recorder.
  Recorder(RunObserver& view, const DeviceInfo& device, JournalWriter* journal);

  /// Takes what an interrupted run has left.
  void take(const Journal& journal);

  void phase(std::string_view key, std::string_view phase) override { view_.phase(key, phase); }
  void round(const CaseRecord& record) override;
  void finished(const CaseRecord& record) override;
  void note(std::string_view text) override { view_.note(text); }
  void tick() override { view_.tick(); }

  /// Every planned case in the order of the plan; one without a record was not finished. `signal`: what interrupted the
  /// run, or 0.
  [[nodiscard]] std::vector<CaseRecord> in_order_of(std::span<const PlannedCase> plan, int signal) const;

 private:
  /// The record as it is shown.
  CaseRecord held_against_device(const CaseRecord& record);
  /// A run that loses its journal goes on, and says so.
  void note_down(const CaseRecord& record, void (JournalWriter::*entry)(const CaseRecord&));

  std::map<std::string, CaseRecord> records_;
  std::map<std::string, CaseRecord> in_flight_;  ///< with the rounds that are finished
  std::vector<CaseRecord> bests_;                ///< those that were the best of their kind when they finished
  RunObserver& view_;
  const DeviceInfo& device_;
  JournalWriter* journal_;
};

/// RecordCodec by harness/report: how records cross the pipe from worker to supervisor.
class JsonRecordCodec final : public RecordCodec {
 public:
  [[nodiscard]] std::string encode(const CaseRecord& record) const override { return dump(to_json(record)); }
  [[nodiscard]] CaseRecord decode(std::string_view text) const override {
    const Json json = parse_json(text, "worker's record");
    return record_from_json({json, "worker's record"});
  }
};

// Resuming an interrupted run.

/// The journal in the folder of report.json, and what its name ends with beside --json FILE.
inline constexpr std::string_view journal_name = "journal.jsonl";
inline constexpr std::string_view journal_ending = ".journal.jsonl";

/// Machine, build or options differ from those of the interrupted run. Exit 4.
class AnotherRun : public std::runtime_error {
 public:
  explicit AnotherRun(const std::string& what) : std::runtime_error(what) {}
};

/// An interrupted run.
struct Resumption {
  std::string path;     ///< of the journal
  HeldFolders folders;  ///< the journal's
  Journal journal;
  std::unique_ptr<JournalWriter> writer;  ///< null for --dry-run
  Options options;                        ///< with the flags and output files of the journal where none are given
};

/// The journal's file that --resume DIR or --resume FILE means.
[[nodiscard]] std::string journal_of(const std::string& resume);

/// Of a command line with --resume. Throws UsageError where there is no journal, or one that does not hold, or that
/// names code which the command line does not.
[[nodiscard]] Resumption open_resumption(const Options& options, const Environment& environment);

/// What must be the same on both sides of an interruption: the set-up of the report, its build, seed and check, the
/// reports that it follows (--pin, --like), and the cases planned. `anonymizer`: null for names as they are.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> settings_of(const Report& report,
                                                                           std::span<const PlannedCase> plan,
                                                                           const Options& options,
                                                                           const Anonymizer* anonymizer);

/// Those settings that are known only after the code of --impl has been asked.
inline constexpr std::array<std::string_view, 2> settings_told_by_code{"cases", "implementations"};

/// Throws AnotherRun with the first setting that differs; `unknown`: those that are not compared.
void require_same_run(const Resumption& resumption, const std::vector<std::pair<std::string, std::string>>& settings,
                      std::span<const std::string_view> unknown = {});

// --anonymize.

/// Nothing without --anonymize. Throws UsageError where the key cannot be read or made.
[[nodiscard]] std::optional<HashKey> key_for(const Options& options, const Environment& environment);

/// The flags that --anonymize keeps, and gpubench's own vocabulary: ops, `suites`, flags and their help.
[[nodiscard]] KeptFlags kept_flags(std::span<const Suite> suites);

/// Who runs this: $USER, $LOGNAME and the name of the home folder.
[[nodiscard]] std::vector<std::string> users_of(const Environment& environment);

/// The words that say what is run, without --pin and --like: whoever resumes the run names the files again.
[[nodiscard]] std::vector<std::string> without_files(const std::vector<std::string>& own_words);

/// Of these words, those that say which code of others is loaded: --impl, --python, --trust-libraries. Whoever resumes
/// a run gives them again.
[[nodiscard]] std::vector<std::string> words_naming_code(const std::vector<std::string>& own_words);

/// Passes everything on, records and notes made anonymous.
class AnonymousObserver final : public RunObserver {
 public:
  /// Both must outlive it.
  AnonymousObserver(const Anonymizer& anonymizer, RunObserver& next) : anonymizer_(anonymizer), next_(next) {}

  void phase(std::string_view key, std::string_view phase) override { next_.phase(key, phase); }
  void round(const CaseRecord& record) override { next_.round(made_anonymous(record)); }
  void finished(const CaseRecord& record) override { next_.finished(made_anonymous(record)); }
  void note(std::string_view text) override { next_.note(anonymizer_.text(text)); }
  void tick() override { next_.tick(); }

 private:
  [[nodiscard]] CaseRecord made_anonymous(CaseRecord record) const {
    anonymizer_.record(record);
    return record;
  }

  const Anonymizer& anonymizer_;
  RunObserver& next_;
};

}  // namespace gpubench
