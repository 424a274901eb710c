// A file of entries that survives a kill and a power cut: each is on the disk before its writer goes on.
//
// A line is one JSON document, {"crc32":"8 digits","entry":{...}}; the checksum is of the entry's text, whose member
// `line` counts from 0. A last line that is torn is what an interruption leaves, and is not there; any other line that
// does not hold makes the journal unusable.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/core/descriptor.h"
#include "harness/report/atomic_file.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"

namespace gpubench {

/// Where the whole lines of a journal end.
struct JournalEnd {
  std::size_t bytes = 0;
  std::size_t lines = 0;
};

/// Calls `visit` with each entry and its number. Reads an untrusted file: limits before memory, checksums before
/// meaning. Throws ReadError, also where there is no entry.
JournalEnd read_lines(const std::string& path, const std::function<void(const Node& entry, std::size_t line)>& visit);

/// Appends to a journal. One process at a time writes to it.
class LineJournal {
 public:
  /// Starts one. Throws WriteError, and where the file is there and may not be replaced with `if_there` as its text.
  /// One of the same user that was interrupted before its first line was whole holds nothing, and is replaced.
  LineJournal(const std::string& path, const WriteRules& rules, std::string_view if_there);
  /// Goes on after `end`: a torn last line is cut off. Throws WriteError, also where another process writes to it.
  LineJournal(const std::string& path, const JournalEnd& end);

  /// Adds the entry {"line":N,"`what`":content}; it is on the disk when the call returns. Throws WriteError; nothing
  /// can be added after that. A journal of which even the first cannot be written is taken away again.
  void append(const std::string& what, Json content);

 private:
  void lock();

  std::string path_;
  Descriptor file_;
  std::size_t lines_ = 0;
};

}  // namespace gpubench
