// Fuzz target: any run journal, soak journal or file of saved hashes is rejected with a reason, or can be resumed or
// shown. The first byte selects: raw bytes of the file, or entries, one per line, which get valid checksums.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "harness/cli/finding_records.h"
#include "harness/cli/soak_log.h"
#include "harness/core/hash.h"
#include "harness/report/journal.h"
#include "harness/report/reader.h"
#include "tests/fuzz/memory_folder.h"

using namespace gpubench;

namespace {

std::string with_checksums(std::string_view entries) {
  std::string text;
  while (!entries.empty()) {
    const std::string_view entry = entries.substr(0, entries.find('\n'));
    text += fmt::format("{{\"crc32\":\"{:08x}\",\"entry\":{}}}\n", crc32(entry), entry);
    entries.remove_prefix(std::min(entries.size(), entry.size() + 1));
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const bool raw = bytes.front() % 2 == 0;
  bytes.remove_prefix(1);
  static const MemoryFolder folder;
  const std::string path = folder.put("journal.jsonl", raw ? std::string(bytes) : with_checksums(bytes));
  try {
    const Journal journal = read_journal(path);
    if (journal.end.lines == 0) std::abort();
    for (const auto& [id, record] : journal.in_flight) {
      if (record.rounds.empty() || journal.finished.contains(id)) std::abort();
    }
    {
      Journal read;
      JournalWriter on(path, read, {});
      on.resumed();
    }
    const Journal again = read_journal(path);
    if (again.end.lines != journal.end.lines + 1 || again.resumed != journal.resumed + 1) std::abort();
    if (again.finished.size() != journal.finished.size() || again.in_flight.size() != journal.in_flight.size())
      std::abort();
  } catch (const ReadError&) {
    // Rejection is allowed.
  }
  try {
    const SoakRead read = read_soak(path);
    if (read.book.summary({.utf8 = true}).empty() || read.book.json().empty()) std::abort();
    (void)read.book.chart();
  } catch (const ReadError&) {
    // Rejection is allowed.
  }
  try {
    (void)read_bits(path);
  } catch (const ReadError&) {
    // Rejection is allowed.
  }
  return 0;
}
