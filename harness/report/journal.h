// The journal of a run: measurements are on disk before the next one begins, so that a run can resume after an
// interruption, a kill or a power cut. The first entry has the settings of the run; each other one is a finished round
// or case.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/record.h"
#include "harness/report/line_journal.h"

namespace gpubench {

struct JournalStart {
  std::string invocation;
  std::vector<std::string> words;                             ///< flags that select and measure
  std::vector<std::pair<std::string, std::string>> settings;  ///< facts that must not change between parts of the run
};

struct Journal {
  JournalStart start;
  std::map<std::string, CaseRecord> finished;
  std::map<std::string, CaseRecord> in_flight;
  int resumed = 0;
  JournalEnd end;
};

/// Adds a round, as passed to JournalWriter::round(). It replaces the round of its number, which is in the summary, and
/// all after it: a later run measures them again.
void add_round(std::map<std::string, CaseRecord>& in_flight, CaseRecord record);

/// Reads an untrusted file: checks limits before allocating and checksums before parsing. Throws ReadError.
[[nodiscard]] Journal read_journal(const std::string& path);

/// Each entry is on disk when the call returns. Only one process may write to a journal.
class JournalWriter {
 public:
  /// Starts a journal. Throws WriteError, also if the file exists and must not be replaced.
  JournalWriter(const std::string& path, const JournalStart& start, const WriteRules& rules);
  /// Continues a journal: locks it and reads it into `journal` as read_journal(). Throws ReadError, and WriteError if
  /// another process writes to it.
  JournalWriter(const std::string& path, Journal& journal, const WriteRules& rules);

  /// Records a resumption and cuts off a torn last line. Throws as finished().
  void resumed();
  /// Records a finished case. Throws WriteError; no entry can follow.
  void finished(const CaseRecord& record);
  /// Records a finished round: the case with only this round; summary.rounds is its number, from 1. Throws as above.
  void round(const CaseRecord& record);

 private:
  LineJournal lines_;
};

}  // namespace gpubench
