#include "tests/harness/report/sinks.h"

#include <stdexcept>

#include "harness/report/json.h"
#include "harness/report/report_json.h"

namespace gpubench {
namespace {

void walk(const Json& value, const Json::json_pointer& place, std::vector<StringField>& fields) {
  if (value.is_string()) fields.push_back({place});
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) walk(value[i], place / i, fields);
  }
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.items()) {
    fields.push_back({place / key, true});
    walk(member, place / key, fields);
  }
}

Json changed(const Json& document, const StringField& field, const std::string& text) {
  Json other = document;
  if (!field.is_name) {
    other[field.place] = text;
    return other;
  }
  Json& object = other[field.place.parent_pointer()];
  Json value = object[field.place.back()];
  object.erase(field.place.back());
  object[text] = std::move(value);
  return other;
}

bool arrived(const Report& report, const StringField& field, const std::string& text) {
  const Json document = report_json(report);
  if (!field.is_name) return document.contains(field.place) && document[field.place] == Json(text);
  const Json::json_pointer object = field.place.parent_pointer();
  return document.contains(object) && document[object].contains(text);
}

}  // namespace

std::vector<StringField> string_fields(const Json& document) {
  std::vector<StringField> fields;
  walk(document["context"], Json::json_pointer("/context"), fields);
  walk(document["gpubench"]["cases"], Json::json_pointer("/gpubench/cases"), fields);
  return fields;
}

std::optional<Report> report_with(const Json& document, const StringField& field, const std::string& text) {
  Problems problems;
  const Json other = changed(document, field, text);
  Report report = report_from_json(other, "made", problems);
  if (arrived(report, field, text)) return report;
  // "" means not set and is left out.
  if (!field.is_name && !text.empty() && problems.none())
    throw std::logic_error(field.text() + " is dropped in silence: " + text);
  return std::nullopt;
}

}  // namespace gpubench
