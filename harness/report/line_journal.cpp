#include "harness/report/line_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "harness/core/hash.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

constexpr ReadLimits file_limits{.bytes = std::size_t{1} << 30U};
constexpr ReadLimits line_limits{.bytes = std::size_t{64} << 20U};
constexpr std::string_view before_checksum = R"({"crc32":")";
constexpr std::string_view before_entry = R"(","entry":)";
constexpr std::string_view after_entry = "}";

std::string checksum(std::string_view entry) { return fmt::format("{:08x}", crc32(entry)); }

// The entry of a line, if its checksum matches.
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

// Whether a run was interrupted before its first line was complete.
bool is_without_lines(std::string_view text) {
  return text.find('\n') == std::string_view::npos &&
         (before_checksum.starts_with(text) || text.starts_with(before_checksum));
}

// Refuses files that an interrupted run still locks, links, and other users' files.
Descriptor created_file(const std::string& path, const WriteRules& rules) {
  constexpr int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  const std::string name = rules.name_of(path);
  if (rules.replace) ::unlinkat(rules.folder, name.c_str(), 0);
  const int made = ::openat(rules.folder, name.c_str(), flags | O_CREAT | O_EXCL, 0600);
  if (made >= 0 || errno != EEXIST) return Descriptor(made);
  // O_NONBLOCK: a pipe is refused below without waiting for a reader.
  Descriptor there(::openat(rules.folder, name.c_str(), flags | O_NONBLOCK));
  struct stat status {};
  if (there.get() >= 0 && ::fstat(there.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid())
    return there;
  errno = EEXIST;
  return Descriptor(-1);
}

bool has_lines(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && status.st_size == 0) return false;
  try {
    return !is_without_lines(read_text(file.get(), path, file_limits));
  } catch (const ReadError&) {
    return true;
  }
}

JournalEnd lines_in(const std::string& text, const std::string& path, const VisitLine& visit) {
  if (text.size() > file_limits.bytes)
    throw ReadError(fmt::format("{}:(root): is longer than {} bytes", visible(path), file_limits.bytes));
  JournalEnd end;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    const bool last = newline == std::string::npos || newline + 1 == text.size();
    const std::string place = fmt::format("{}:line {}", path, end.lines + 1);
    const std::optional<std::string_view> entry =
        newline == std::string::npos ? std::nullopt : entry_of(std::string_view(text).substr(at, newline - at));
    if (!entry) {
      if (last && (end.lines > 0 || is_without_lines(text))) break;
      throw ReadError(fmt::format("{}: is damaged: its checksum does not match", visible(place)));
    }
    const Json json = parse_json(*entry, place, line_limits);
    const Node node(json, place);
    const Node number = node.at("line");
    if (number.integer() != static_cast<std::int64_t>(end.lines)) number.refuse("does not follow: a line is missing");
    visit(node, end.lines);
    ++end.lines;
    at = newline + 1;
    end.bytes = at;
  }
  if (end.lines == 0)
    throw ReadError(fmt::format("{}: has no lines, so nothing is lost; run without --resume", visible(path)));
  return end;
}

}  // namespace

JournalEnd read_lines(const std::string& path, const VisitLine& visit) {
  return lines_in(read_text(path, file_limits), path, visit);
}

LineJournal::LineJournal(const std::string& path, const WriteRules& rules, std::string_view exists_text)
    : path_(path), rules_(rules), file_(created_file(path, rules)) {
  const bool there = file_.get() < 0 && errno == EEXIST;
  if (file_.get() < 0 && !there) cannot_write(path_, "create it", errno);
  if (!there) lock();
  if (there || has_lines(file_, path_)) throw WriteError(fmt::format("{}: {}", visible(path), exists_text));
  if (retried([&] { return ::ftruncate(file_.get(), 0); }) != 0) cannot_write(path_, "empty it", errno);
}

LineJournal::LineJournal(const std::string& path, const WriteRules& rules, const VisitLine& visit)
    : path_(path), rules_(rules) {
  constexpr int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  file_ = Descriptor(::openat(rules.folder, rules.name_of(path).c_str(), flags));
  if (file_.get() < 0)
    throw ReadError(fmt::format("{}:(root): cannot be opened to resume it: {}", visible(path), std::strerror(errno)));
  lock();
  end_ = lines_in(read_text(file_.get(), path, file_limits), path, visit);
  may_be_torn_ = true;
}

void LineJournal::lock() {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw WriteError(fmt::format("{}: another run is writing to it", visible(path_)));
  // Works without locks if the file system has none.
}

void LineJournal::append(const std::string& what, Json content) {
  const std::string entry = dump({{"line", end_.lines}, {what, std::move(content)}});
  std::string line{before_checksum};
  line += checksum(entry);
  line += before_entry;
  line += entry;
  line += after_entry;
  line += '\n';
  try {
    if (may_be_torn_ && retried([&] { return ::ftruncate(file_.get(), static_cast<off_t>(end_.bytes)); }) != 0)
      cannot_write(path_, "cut off its torn line", errno);
    may_be_torn_ = false;
    write_all(file_.get(), line, path_);
    if (retried([&] { return ::fdatasync(file_.get()); }) != 0) cannot_write(path_, "sync", errno);
    if (end_.lines == 0) sync_folder_of(path_, rules_);
  } catch (const WriteError&) {
    if (end_.lines == 0) ::unlinkat(rules_.folder, rules_.name_of(path_).c_str(), 0);
    throw;
  }
  ++end_.lines;
}

}  // namespace gpubench
