// A file of entries that survives kills and power cuts: each entry is on disk before its writer continues.
//
// Each line is a JSON document {"crc32":"8 digits","entry":{...}}. The checksum covers the entry's text; its member
// `line` counts from 0. A torn last line, left by an interruption, is ignored; any other invalid line makes the journal
// unusable.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/core/file/atomic_file.h"
#include "harness/core/file/descriptor.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"

namespace gpubench {

struct JournalEnd {
  std::size_t bytes = 0;
  std::size_t lines = 0;
};

using VisitLine = std::function<void(const Node& entry, std::size_t line)>;

/// Calls `visit` with each entry and its number. Reads an untrusted file: checks limits before allocating and checksums
/// before parsing. Throws ReadError, also if there is no entry.
JournalEnd read_lines(const std::string& path, const VisitLine& visit);

/// Only one process may write to a journal.
class LineJournal {
 public:
  /// Starts a journal. Throws WriteError, with the text `exists_text` if the file exists and must not be replaced.
  /// Replaces a file of the same user without a complete line.
  LineJournal(const std::string& path, const WriteRules& rules, std::string_view exists_text);
  /// Continues a journal: reads it as read_lines(), locked and through the descriptor for append(). The first append()
  /// cuts off a torn last line. Throws ReadError, and WriteError if another process writes to it.
  LineJournal(const std::string& path, const WriteRules& rules, const VisitLine& visit);

  /// Adds the entry {"line":N,"`what`":content}, on disk when the call returns. Throws WriteError; no entry can follow.
  /// Removes the file if its first entry cannot be written.
  void append(const std::string& what, Json content);
  /// Of the lines that were read; of a new journal 0 bytes, and the lines added.
  [[nodiscard]] const JournalEnd& end() const { return end_; }

 private:
  void lock();

  std::string path_;
  WriteRules rules_;
  Descriptor file_;
  JournalEnd end_;
  bool may_be_torn_ = false;
};

}  // namespace gpubench
