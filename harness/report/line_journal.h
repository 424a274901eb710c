// A file of entries that survives a kill and a power cut: each is on the disk before its writer goes on.
//
// A line is one JSON document, {"crc32":"8 digits","entry":{...}}; the checksum is of the entry's text, whose member
// `line` counts from 0. A last line that is torn is what an interruption leaves, and is not there; any other line that
// does not hold makes the journal unusable.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/core/file/atomic_file.h"
#include "harness/core/file/descriptor.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"

namespace gpubench {

/// Where the whole lines of a journal end.
struct JournalEnd {
  std::size_t bytes = 0;
  std::size_t lines = 0;
};

using VisitLine = std::function<void(const Node& entry, std::size_t line)>;

/// Calls `visit` with each entry and its number. Reads an untrusted file: limits before memory, checksums before
/// meaning. Throws ReadError, also where there is no entry.
JournalEnd read_lines(const std::string& path, const VisitLine& visit);

/// Appends to a journal. One process at a time writes to it.
class LineJournal {
 public:
  /// Starts one. Throws WriteError, and where the file is there and may not be replaced with `if_there` as its text.
  /// One of the same user that was interrupted before its first line was whole holds nothing, and is replaced.
  LineJournal(const std::string& path, const WriteRules& rules, std::string_view if_there);
  /// Continues one that is there: reads it as read_lines() does, locked and through the descriptor that append() writes
  /// to. The first append() cuts off a torn last line. Throws ReadError, and WriteError where another process writes to
  /// it.
  LineJournal(const std::string& path, const WriteRules& rules, const VisitLine& visit);

  /// Adds the entry {"line":N,"`what`":content}; it is on the disk when the call returns. Throws WriteError; nothing
  /// can be added after that. A journal of which even the first cannot be written is taken away again.
  void append(const std::string& what, Json content);
  /// Of what was read; of a new one 0 bytes, and the lines that were added.
  [[nodiscard]] const JournalEnd& end() const { return end_; }

 private:
  void lock();

  std::string path_;
  WriteRules rules_;
  Descriptor file_;
  JournalEnd end_;
  bool may_be_torn_ = false;  ///< after end_
};

}  // namespace gpubench
