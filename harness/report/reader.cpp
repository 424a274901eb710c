#include "harness/report/reader.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <set>

#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// Watches the parser's events: throwing from its callback stops it at once, before anything deep has been built.
class Guard {
 public:
  Guard(std::string_view file, const ReadLimits& limits) : file_(file), limits_(limits) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= limits_.depth) {
        throw ReadError(fmt::format("{}: nested deeper than {} levels", file_, limits_.depth));
      }
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        throw ReadError(fmt::format("{}: key \"{}\" appears twice in one object", file_, visible(key)));
      }
    }
    return true;
  }

 private:
  std::string file_;
  ReadLimits limits_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view file, const ReadLimits& limits) {
  const std::string source = visible(file);
  if (text.size() > limits.bytes) {
    throw ReadError(fmt::format("{}: {} bytes, more than the {} that are read", source, text.size(), limits.bytes));
  }
  Guard guard(source, limits);
  try {
    return Json::parse(text,
                       [&](int depth, Json::parse_event_t event, Json& parsed) { return guard(depth, event, parsed); });
  } catch (const Json::exception& e) {
    throw ReadError(fmt::format("{}: not JSON: {}", source, visible(e.what())));
  }
}

Json read_json_file(const std::string& path, const ReadLimits& limits) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ReadError(fmt::format("{}: cannot be opened for reading", visible(path)));
  std::string text;
  char block[1U << 16U];
  while (file.read(block, sizeof block), file.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > limits.bytes) break;  // parse_json() refuses it
  }
  return parse_json(text, path, limits);
}

void Node::refuse(std::string_view why) const {
  throw ReadError(fmt::format("{}:{}: {}", visible(file_), path_.empty() ? "(root)" : visible(path_), why));
}

Node Node::at(std::string_view key) const {
  if (!json_->is_object()) refuse(fmt::format("is {}, expected an object", json_->type_name()));
  const auto found = json_->find(std::string(key));
  if (found == json_->end()) refuse(fmt::format("lacks \"{}\"", visible(key)));
  return {*found, file_, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

Node Node::at(std::size_t index) const {
  if (!json_->is_array()) refuse(fmt::format("is {}, expected an array", json_->type_name()));
  if (index >= json_->size()) refuse(fmt::format("has {} elements, element {} is wanted", json_->size(), index));
  return {(*json_)[index], file_, fmt::format("{}[{}]", path_, index)};
}

bool Node::has(std::string_view key) const { return json_->is_object() && json_->contains(std::string(key)); }

std::size_t Node::size() const {
  if (!json_->is_structured()) refuse(fmt::format("is {}, expected an array or object", json_->type_name()));
  return json_->size();
}

std::vector<std::string> Node::keys() const {
  if (!json_->is_object()) refuse(fmt::format("is {}, expected an object", json_->type_name()));
  std::vector<std::string> names;
  for (const auto& member : json_->items()) names.push_back(member.key());
  return names;
}

std::string Node::text() const {
  if (!json_->is_string()) refuse(fmt::format("is {}, expected a string", json_->type_name()));
  return json_->get<std::string>();
}

bool Node::boolean() const {
  if (!json_->is_boolean()) refuse(fmt::format("is {}, expected true or false", json_->type_name()));
  return json_->get<bool>();
}

std::int64_t Node::integer(std::int64_t low, std::int64_t high) const {
  if (!json_->is_number_integer()) refuse(fmt::format("is {}, expected a whole number", dump(*json_).substr(0, 40)));
  const bool beyond =
      json_->is_number_unsigned() &&
      json_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t value = beyond ? 0 : json_->get<std::int64_t>();
  if (beyond || value < low || value > high) {
    refuse(fmt::format("is {}, expected {} to {}", dump(*json_), low, high));
  }
  return value;
}

std::uint64_t Node::natural() const {
  if (!json_->is_number_unsigned())
    refuse(fmt::format("is {}, expected a whole number from 0", dump(*json_).substr(0, 40)));
  return json_->get<std::uint64_t>();
}

double Node::number() const {
  if (!json_->is_number()) refuse(fmt::format("is {}, expected a number", json_->type_name()));
  return json_->get<double>();
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
  if (!list.json_->is_array()) list.refuse(fmt::format("is {}, expected an array", list.json_->type_name()));
  std::vector<double> values;
  values.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
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
