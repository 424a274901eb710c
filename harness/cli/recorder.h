// Keeps what a run finds while it goes on: in memory for its report, and in its journal for a run that goes on with it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"
#include "harness/plan/plan.h"
#include "harness/report/journal.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "harness/run/run.h"

namespace gpubench {

/// Passes everything on to what the user watches, where a record is held against the device at once: a rate that cannot
/// be true must not be shown as a pass first.
class Recorder final : public RunObserver {
 public:
  /// `journal`: null for none. All must outlive the recorder.
  Recorder(RunObserver& view, const DeviceInfo& device, JournalWriter* journal);

  /// Takes what a run before this one has finished.
  void take(const std::map<std::string, CaseRecord>& finished);

  void phase(std::string_view case_id, std::string_view phase) override { view_.phase(case_id, phase); }
  void round(const CaseRecord& record) override;
  void finished(const CaseRecord& record) override;
  void note(std::string_view text) override { view_.note(text); }
  void tick() override { view_.tick(); }

  /// Every planned case in the order of the plan; one without a record was not reached.
  [[nodiscard]] std::vector<CaseRecord> in_order_of(std::span<const PlannedCase> plan, bool interrupted) const;
  /// Whether everything so far is in the journal.
  [[nodiscard]] bool has_journal() const { return journal_ != nullptr; }

 private:
  /// The record as it is shown.
  CaseRecord held_against_device(const CaseRecord& record);
  /// A run that loses its journal goes on, and says so.
  void note_down(const CaseRecord& record, void (JournalWriter::*entry)(const CaseRecord&));

  std::map<std::string, CaseRecord> records_;
  std::map<std::string, int> rounds_;  ///< finished, of cases in flight
  std::vector<CaseRecord> bests_;      ///< those that were the best of their kind when they finished
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

}  // namespace gpubench
