#include "harness/cli/recorder.h"

#include <fmt/format.h>

#include "harness/hardware/peaks.h"
#include "harness/run/case_verdict.h"

namespace gpubench {

Recorder::Recorder(RunObserver& view, const DeviceInfo& device, JournalWriter* journal)
    : view_(view), device_(device), journal_(journal) {}

void Recorder::take(const std::map<std::string, CaseRecord>& finished) {
  for (const auto& [id, record] : finished) {
    records_[id] = record;
    (void)held_against_device(record);
  }
}

void Recorder::note_down(const CaseRecord& record, void (JournalWriter::*entry)(const CaseRecord&)) {
  if (journal_ == nullptr) return;
  try {
    (journal_->*entry)(record);
  } catch (const WriteError& e) {
    journal_ = nullptr;
    view_.note(fmt::format("the run goes on, but what follows is not in its journal: {}", e.what()));
  }
}

void Recorder::round(const CaseRecord& record) {
  note_down(record, &JournalWriter::round);
  rounds_[record.id] = record.summary.rounds;
}

void Recorder::finished(const CaseRecord& record) {
  note_down(record, &JournalWriter::finished);
  records_[record.id] = record;
  rounds_.erase(record.id);
  view_.finished(held_against_device(record));
}

CaseRecord Recorder::held_against_device(const CaseRecord& record) {
  bests_.push_back(record);
  add_ceilings(device_, bests_);
  CaseRecord held = bests_.back();
  if (!held.derived.peak || held.derived.peak->of_best.value_or(0.0) < 1.0) bests_.pop_back();
  return held;
}

std::vector<CaseRecord> Recorder::in_order_of(std::span<const PlannedCase> plan, bool interrupted) const {
  std::vector<CaseRecord> all;
  for (const PlannedCase& planned : plan) {
    if (const auto found = records_.find(planned.id()); found != records_.end()) {
      all.push_back(found->second);
      continue;
    }
    CaseRecord record = record_of(planned);
    record.verdict = interrupted ? Verdict::skipped : Verdict::error;
    record.reason = interrupted ? "the run was interrupted before this case finished"
                                : "the run ended without a record of this case";
    if (const auto rounds = rounds_.find(planned.id()); interrupted && rounds != rounds_.end() && has_journal())
      record.reason += fmt::format("; {} of its rounds are in the journal", rounds->second);
    all.push_back(std::move(record));
  }
  return all;
}

}  // namespace gpubench
