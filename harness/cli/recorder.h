// Keeps the records of a run: in memory for its report, and in its journal for --resume; anonymous with --anonymize.
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

/// Forwards everything to the user's view. Compares records with the device's peaks first, so that an impossible rate
/// is never shown as a pass.
class Recorder final : public RunObserver {
 public:
  /// `journal`: null for none. Arguments must outlive the recorder.
  Recorder(RunObserver& view, const DeviceInfo& device, JournalWriter* journal);

  void take(const Journal& journal);

  void phase(std::string_view key, std::string_view phase) override { view_.phase(key, phase); }
  void round(const CaseRecord& record) override;
  void finished(const CaseRecord& record) override;
  void note(std::string_view text) override { view_.note(text); }
  void tick() override { view_.tick(); }

  /// Every planned case in plan order; those without a record are unfinished. `signal`: the interruption, or 0.
  [[nodiscard]] std::vector<CaseRecord> in_order_of(std::span<const PlannedCase> plan, int signal) const;

 private:
  CaseRecord peak_checked(const CaseRecord& record);
  /// Notes a failure of the journal; the run continues without it.
  void append_note(const CaseRecord& record, void (JournalWriter::*entry)(const CaseRecord&));

  std::map<std::string, CaseRecord> records_;
  std::map<std::string, CaseRecord> in_flight_;  ///< with their finished rounds
  std::vector<CaseRecord> bests_;
  RunObserver& view_;
  const DeviceInfo& device_;
  JournalWriter* journal_;
};

class JsonRecordCodec final : public RecordCodec {
 public:
  [[nodiscard]] std::string encode(const CaseRecord& record) const override { return dump(to_json(record)); }
  [[nodiscard]] CaseRecord decode(std::string_view text) const override {
    const Json json = parse_json(text, "worker's record");
    return record_from_json({json, "worker's record"});
  }
};

/// The journal in the folder of report.json, and the suffix for --json FILE.
inline constexpr std::string_view journal_name = "journal.jsonl";
inline constexpr std::string_view journal_ending = ".journal.jsonl";

/// Machine, build or options differ from those of the interrupted run: exit 4.
class DifferentRun : public std::runtime_error {
 public:
  explicit DifferentRun(const std::string& what) : std::runtime_error(what) {}
};

struct Resumption {
  std::string path;
  HeldFolders folders;
  Journal journal;
  std::unique_ptr<JournalWriter> writer;
  Options options;  ///< flags and output files of the journal unless given again
};

/// The journal file for --resume DIR or --resume FILE.
[[nodiscard]] std::string journal_of(const std::string& resume);

/// For --resume. Throws UsageError if there is no journal, if it is invalid, or if it names code that the command line
/// does not.
[[nodiscard]] Resumption open_resumption(const Options& options, const Environment& environment);

/// What must not change across an interruption: the set-up of the report, its build, seed and check, the reports named
/// by --pin and --like, and the planned cases. `anonymizer`: null without --anonymize.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> settings_of(const Report& report,
                                                                           std::span<const PlannedCase> plan,
                                                                           const Options& options,
                                                                           const Anonymizer* anonymizer);

/// Settings known only after the code of --impl was asked.
inline constexpr std::array<std::string_view, 2> settings_from_code{"cases", "implementations"};

/// Throws DifferentRun with the first setting that differs. `unknown`: settings that are not compared.
void require_same_run(const Resumption& resumption, const std::vector<std::pair<std::string, std::string>>& settings,
                      std::span<const std::string_view> unknown = {});

/// Nothing without --anonymize. Throws UsageError if the key cannot be read or made.
[[nodiscard]] std::optional<HashKey> key_for(const Options& options, const Environment& environment);

/// Flags that --anonymize keeps, and gpubench's vocabulary: ops, `suites`, flags and their help.
[[nodiscard]] KeptFlags kept_flags(std::span<const Suite> suites);

/// $USER, $LOGNAME and the name of the home folder.
[[nodiscard]] std::vector<std::string> users_of(const Environment& environment);

/// The words that define a run, without --pin and --like; to resume, the user names those files again.
[[nodiscard]] std::vector<std::string> without_files(const std::vector<std::string>& own_words);

/// Of these words, those that load foreign code: --impl, --python, --trust-libraries. To resume, the user gives them
/// again.
[[nodiscard]] std::vector<std::string> code_flags(const std::vector<std::string>& own_words);

/// Forwards records and notes, made anonymous.
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
