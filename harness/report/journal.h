// The journal of a run: what was measured, on the disk before the next measurement begins, so that a run that was
// interrupted, killed or lost its power can be resumed.
// The first entry says under which settings the run is made, each other one that a round or a case is finished.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/record.h"
#include "harness/report/line_journal.h"

namespace gpubench {

/// Under what a run is made.
struct JournalStart {
  std::string invocation;          ///< of the report
  std::vector<std::string> words;  ///< flags that choose and measure, for a call that gives none of them
  std::vector<std::pair<std::string, std::string>> settings;  ///< facts that must be the same to go on
};

/// The content of a journal.
struct Journal {
  JournalStart start;
  std::map<std::string, CaseRecord> finished;
  std::map<std::string, CaseRecord> in_flight;  ///< with the rounds that are finished
  int resumed = 0;                              ///< how often it was resumed
  JournalEnd end;
};

/// Adds a round, as JournalWriter::round() takes it, to those of its case. It replaces the one of its number, which is
/// in the record's summary, and all after it: a later run measures them again.
void add_round(std::map<std::string, CaseRecord>& in_flight, CaseRecord record);

/// Reads an untrusted file: limits before memory, checksums before meaning. Throws ReadError.
[[nodiscard]] Journal read_journal(const std::string& path);

/// Appends to a journal; each entry is on the disk when the call returns. One process at a time writes to a journal.
class JournalWriter {
 public:
  /// Starts one. Throws WriteError, also where the file is there and may not be replaced.
  JournalWriter(const std::string& path, const JournalStart& start, const WriteRules& rules);
  /// Continues one that is there: locks it and reads it into `journal` as read_journal() does. Throws ReadError, and
  /// WriteError where another process writes to it.
  JournalWriter(const std::string& path, Journal& journal, const WriteRules& rules);

  /// The run that was read is continued: a torn last line is cut off. Throws as finished().
  void resumed();
  /// A case is finished. Throws WriteError; nothing can be added after that.
  void finished(const CaseRecord& record);
  /// A round of a case is: the case as it is now, with this one round; summary.rounds says which it is, from 1. Throws
  /// as above.
  void round(const CaseRecord& record);

 private:
  LineJournal lines_;
};

}  // namespace gpubench
