#include "harness/report/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/core/file/descriptor.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"

namespace gpubench {
namespace {

[[noreturn]] void refuse_file(const std::string& path, std::string_view why) {
  throw ReadError(fmt::format("{}:(root): {}", visible(path), why));
}

constexpr std::string_view no_file = "is neither a file nor a pipe";

bool is_file_or_pipe(const struct stat& status) { return S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode); }

// Files that the kernel generates on reading, such as /proc/kmsg and trace_pipe, which block.
bool is_made_up(int fd) {
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return false;
  for (const auto magic : {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC}) {
    if (static_cast<unsigned long>(system.f_type) == static_cast<unsigned long>(magic)) return true;
  }
  return false;
}

}  // namespace

std::string read_text(const std::string& path, const ReadLimits& limits) {
  struct stat status {};
  // Checked before opening, which has side effects on some devices.
  if (::stat(path.c_str(), &status) == 0 && !is_file_or_pipe(status)) refuse_file(path, no_file);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) refuse_file(path, fmt::format("cannot be opened for reading: {}", std::strerror(errno)));
  return read_text(file.get(), path, limits);
}

std::string read_text(int fd, const std::string& path, const ReadLimits& limits) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !is_file_or_pipe(status)) refuse_file(path, no_file);
  if (is_made_up(fd)) refuse_file(path, "is a file that the kernel makes up, not one that was written");
  std::string text;
  if (S_ISREG(status.st_mode)) text.reserve(std::min(static_cast<std::size_t>(status.st_size), limits.bytes) + 1);
  std::vector<char> block(std::size_t{1} << 16U);
  while (text.size() <= limits.bytes) {  // parse_json() refuses longer ones
    const ssize_t bytes = retried([&] { return ::read(fd, block.data(), block.size()); });
    if (bytes < 0) refuse_file(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (bytes == 0) break;
    text.append(block.data(), static_cast<std::size_t>(bytes));
  }
  return text;
}

Json read_json_file(const std::string& path, const ReadLimits& limits) {
  return parse_json(read_text(path, limits), path, limits);
}

std::string Node::complaint(std::string_view why) const {
  const std::string place = path();
  return fmt::format("{}:{}: {}", visible(origin_->file), place.empty() ? "(root)" : visible(place), why);
}

std::string Node::path() const {
  std::string path = origin_->path;
  for (std::size_t level = 0; level < levels_; ++level) {
    const Json& in = *above_[level];
    const Json* const at = level + 1 < levels_ ? above_[level + 1] : json_;
    if (in.is_array()) {
      path += fmt::format("[{}]", at - in.get_ref<const Json::array_t&>().data());
    } else {
      const auto& members = in.get_ref<const Json::object_t&>();
      const auto here = [at](const auto& member) { return &member.second == at; };
      path += (path.empty() ? "" : ".") + std::find_if(members.begin(), members.end(), here)->first;
    }
  }
  return path;
}

const Json* Node::member(std::string_view key) const {
  const auto& members = json_->get_ref<const Json::object_t&>();
  const auto named = [key](const auto& one) { return one.first == key; };
  const auto found = std::find_if(members.begin(), members.end(), named);
  return found == members.end() ? nullptr : &found->second;
}

void Node::refuse(std::string_view why) const { throw ReadError(complaint(why)); }

Node Node::at(std::string_view key) const {
  if (!json_->is_object()) refuse(fmt::format("is {}, expected an object", json_->type_name()));
  const Json* const found = member(key);
  if (found == nullptr) refuse(fmt::format("lacks \"{}\"", visible(key)));
  return child(*found);
}

Node Node::child(const Json& value) const {
  Node node = *this;
  if (levels_ == above_.size()) {  // deeper than any format of gpubench
    node.origin_ = std::make_shared<const Origin>(Origin{origin_->file, path()});
    node.levels_ = 0;
  }
  node.above_[node.levels_++] = json_;
  node.json_ = &value;
  return node;
}

Node Node::at(std::size_t index) const {
  if (!json_->is_array()) refuse(fmt::format("is {}, expected an array", json_->type_name()));
  if (index >= json_->size()) refuse(fmt::format("has {} elements, element {} is wanted", json_->size(), index));
  return child((*json_)[index]);
}

bool Node::has(std::string_view key) const { return json_->is_object() && member(key) != nullptr; }

std::size_t Node::size() const {
  if (!json_->is_structured()) refuse(fmt::format("is {}, expected an array or object", json_->type_name()));
  return json_->size();
}

std::size_t Node::length() const {
  if (!json_->is_array()) refuse(fmt::format("is {}, expected an array", json_->type_name()));
  return json_->size();
}

std::vector<std::pair<std::string, Node>> Node::members() const {
  if (!json_->is_object()) refuse(fmt::format("is {}, expected an object", json_->type_name()));
  std::vector<std::pair<std::string, Node>> nodes;
  nodes.reserve(json_->size());
  for (const auto& [key, value] : json_->get_ref<const Json::object_t&>()) nodes.emplace_back(key, child(value));
  return nodes;
}

std::string Node::shown() const { return json_->is_number() ? dump(*json_) : json_->type_name(); }

std::string Node::text() const {
  if (!json_->is_string()) refuse(fmt::format("is {}, expected a string", json_->type_name()));
  return json_->get<std::string>();
}

bool Node::is_null() const { return json_->is_null(); }

bool Node::boolean() const {
  if (!json_->is_boolean()) refuse(fmt::format("is {}, expected true or false", json_->type_name()));
  return json_->get<bool>();
}

std::int64_t Node::integer(std::int64_t low, std::int64_t high) const {
  if (!json_->is_number_integer()) refuse(fmt::format("is {}, expected a whole number", shown()));
  const bool beyond =
      json_->is_number_unsigned() &&
      json_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t value = beyond ? 0 : json_->get<std::int64_t>();
  if (beyond || value < low || value > high) {
    refuse(fmt::format("is {}, expected {} to {}", shown(), low, high));
  }
  return value;
}

std::uint64_t Node::natural() const {
  if (!json_->is_number_unsigned()) refuse(fmt::format("is {}, expected a whole number from 0", shown()));
  return json_->get<std::uint64_t>();
}

double Node::number() const {
  if (!json_->is_number()) refuse(fmt::format("is {}, expected a number", json_->type_name()));
  return json_->get<double>();
}

double Node::number(double low, double high) const {
  const double value = number();
  if (!(value >= low && value <= high)) refuse(fmt::format("is {}, expected {} to {}", value, low, high));
  return value;
}

std::time_t Node::time() const {
  const std::string said = text();
  std::tm utc{};
  const char* end = ::strptime(said.c_str(), "%Y-%m-%dT%H:%M:%S+00:00", &utc);
  const std::time_t time = end == nullptr ? 0 : ::timegm(&utc);
  if (end == nullptr || iso_time(time) != said) refuse("is no time such as 2026-11-21T02:34:19+00:00");
  return time;
}

double Node::noted(std::string_view name) const {
  const std::string note = has("nonfinite") && at("nonfinite").has(name) ? at("nonfinite").at(name).text() : "";
  if (note == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (note == "inf") return std::numeric_limits<double>::infinity();
  if (note == "-inf") return -std::numeric_limits<double>::infinity();
  refuse(fmt::format("\"{}\" is null, and \"nonfinite\" does not say which of nan, inf, -inf it is", visible(name)));
}

double Node::number_or_note(std::string_view key) const {
  const Node member = at(key);
  return member.is_null() ? noted(key) : member.number();
}

std::vector<double> Node::numbers_or_notes(std::string_view key) const {
  const Node list = at(key);
  const std::size_t length = list.length();
  std::vector<double> values;
  values.reserve(length);
  for (std::size_t i = 0; i < length; ++i) {
    const Json& element = (*list.json_)[i];
    if (element.is_null()) {
      values.push_back(noted(fmt::format("{}[{}]", key, i)));
    } else if (element.is_number()) {
      values.push_back(element.get<double>());
    } else {
      list.at(i).refuse(fmt::format("is {}, expected a number", element.type_name()));
    }
  }
  return values;
}

}  // namespace gpubench
