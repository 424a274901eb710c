#include "harness/report/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "harness/core/hash.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr std::string_view journal_schema = "gpubench-journal";
constexpr std::int64_t journal_version = 1;
constexpr ReadLimits file_limits{.bytes = std::size_t{1} << 30U};
constexpr ReadLimits line_limits{.bytes = std::size_t{64} << 20U};
constexpr std::string_view before_checksum = R"({"crc32":")";
constexpr std::string_view before_entry = R"(","entry":)";
constexpr std::string_view after_entry = "}";

std::string checksum(std::string_view entry) { return fmt::format("{:08x}", crc32(entry)); }

// What stands between checksum and end, where the checksum holds.
std::optional<std::string_view> entry_of(std::string_view line) {
  constexpr std::size_t digits = 8;
  constexpr std::size_t head = before_checksum.size() + digits + before_entry.size();
  if (line.size() < head + after_entry.size() || !line.starts_with(before_checksum) || !line.ends_with(after_entry) ||
      line.substr(before_checksum.size() + digits, before_entry.size()) != before_entry)
    return std::nullopt;
  const std::string_view entry = line.substr(head, line.size() - head - after_entry.size());
  if (line.substr(before_checksum.size(), digits) != checksum(entry)) return std::nullopt;
  return entry;
}

JournalStart start_from(const Node& node) {
  JournalStart start;
  if (node.at("schema").text() != journal_schema) node.at("schema").refuse(fmt::format("is not {}", journal_schema));
  (void)node.at("schema_version").integer(journal_version, journal_version);
  start.invocation = node.at("invocation").text();
  const Node words = node.at("words");
  for (std::size_t i = 0; i < words.length(); ++i) start.words.push_back(words.at(i).text());
  for (const auto& [key, value] : node.at("settings").members()) start.settings.emplace_back(key, value.text());
  return start;
}

// A round that follows those before it; the first one again where another worker began the case anew.
void add_round(Journal& journal, CaseRecord&& record, const Node& node) {
  if (record.rounds.size() != 1) node.refuse("does not hold one round");
  if (journal.finished.contains(record.key())) node.refuse("is a round of a case that is finished");
  const int number = record.summary.rounds;
  if (number == 1) {
    journal.in_flight[record.key()] = std::move(record);
    return;
  }
  const auto found = journal.in_flight.find(record.key());
  if (found == journal.in_flight.end() || number != static_cast<int>(found->second.rounds.size()) + 1)
    node.refuse(fmt::format("is round {} of its case, out of turn", number));
  std::vector<RoundRecord> rounds = std::move(found->second.rounds);
  rounds.push_back(std::move(record.rounds.front()));
  found->second = std::move(record);
  found->second.rounds = std::move(rounds);
}

void add_entry(Journal& journal, const Node& node) {
  const Node number = node.at("line");
  if (number.integer() != static_cast<std::int64_t>(journal.lines)) number.refuse("does not follow: a line is missing");
  if (journal.lines == 0) {
    journal.start = start_from(node.at("start"));
  } else if (node.has("case")) {
    CaseRecord record = record_from_json(node.at("case"));
    journal.in_flight.erase(record.key());
    const std::string id = record.key();
    if (!journal.finished.emplace(id, std::move(record)).second) node.refuse("finishes a case once more");
  } else if (node.has("round")) {
    add_round(journal, record_from_json(node.at("round")), node.at("round"));
  } else {
    (void)node.at("resumed").boolean();
    ++journal.resumed;
  }
}

// Never into what an interrupted run still holds, and never through a link.
int opened_anew(const std::string& path, const WriteRules& rules) {
  if (rules.replace) ::unlink(path.c_str());
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

}  // namespace

Journal read_journal(const std::string& path) {
  const std::string text = read_text(path, file_limits);
  if (text.size() > file_limits.bytes)
    throw ReadError(fmt::format("{}:(root): is longer than {} bytes", visible(path), file_limits.bytes));
  Journal journal;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const bool last = end == std::string::npos || end + 1 == text.size();
    const std::string place = fmt::format("{}:line {}", path, journal.lines + 1);
    const std::optional<std::string_view> entry =
        end == std::string::npos ? std::nullopt : entry_of(std::string_view(text).substr(at, end - at));
    if (!entry) {
      if (last && journal.lines > 0) break;  // torn
      throw ReadError(fmt::format("{}: is damaged: its checksum does not hold", visible(place)));
    }
    const Json json = parse_json(*entry, place, line_limits);
    add_entry(journal, Node(json, place));
    ++journal.lines;
    at = end + 1;
    journal.bytes = at;
  }
  if (journal.lines == 0) throw ReadError(fmt::format("{}: is empty", visible(path)));
  return journal;
}

JournalWriter::JournalWriter(const std::string& path, const JournalStart& start, const WriteRules& rules)
    : path_(path), file_(opened_anew(path, rules)) {
  if (file_.get() < 0 && errno == EEXIST) {
    throw WriteError(
        fmt::format("{}: is the journal of a run that was interrupted; --resume continues it, --force "
                    "starts anew",
                    visible(path)));
  }
  if (file_.get() < 0) cannot_write(path_, "create it", errno);
  try {
    lock();
    Json settings = Json::object();
    for (const auto& [key, value] : start.settings) settings[key] = value;
    append(dump({{"line", 0},
                 {"start",
                  {{"schema", journal_schema},
                   {"schema_version", journal_version},
                   {"invocation", start.invocation},
                   {"words", start.words},
                   {"settings", std::move(settings)}}}}));
    sync_folder_of(path_);
  } catch (const WriteError&) {
    ::unlink(path_.c_str());
    throw;
  }
}

JournalWriter::JournalWriter(const std::string& path, const Journal& read)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC)), lines_(read.lines) {
  if (file_.get() < 0) cannot_write(path_, "open it to go on", errno);
  lock();
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
    cannot_write(path_, "go on with what is no file", EINVAL);
  if (static_cast<std::size_t>(status.st_size) < read.bytes) cannot_write(path_, "go on: it became shorter", EBUSY);
  if (retried([&] { return ::ftruncate(file_.get(), static_cast<off_t>(read.bytes)); }) != 0)
    cannot_write(path_, "cut off its torn line", errno);
  append(dump({{"line", lines_}, {"resumed", true}}));
}

void JournalWriter::lock() {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw WriteError(fmt::format("{}: another run is writing to it", visible(path_)));
  // A file system without locks is taken as it is.
}

void JournalWriter::finished(const CaseRecord& record) { append(dump({{"line", lines_}, {"case", to_json(record)}})); }

void JournalWriter::round(const CaseRecord& record) { append(dump({{"line", lines_}, {"round", to_json(record)}})); }

void JournalWriter::append(const std::string& entry) {
  std::string line{before_checksum};
  line += checksum(entry);
  line += before_entry;
  line += entry;
  line += after_entry;
  line += '\n';
  write_all(file_.get(), line, path_);
  if (retried([&] { return ::fdatasync(file_.get()); }) != 0) cannot_write(path_, "sync", errno);
  ++lines_;
}

}  // namespace gpubench
