// Every text that a report holds, found by walking the document, so that a field that is new is found too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/report/json.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// A text of a report's document: a value, or the name of a member whose names are free ("env", "libraries").
struct StringField {
  Json::json_pointer place;
  bool is_name = false;

  [[nodiscard]] std::string text() const { return place.to_string() + (is_name ? " (name)" : ""); }
};

/// Of the context and the cases; `benchmarks` and totals are worked out from these.
[[nodiscard]] std::vector<StringField> string_fields(const Json& document);

/// The report as the reader makes it of the document with another text in one place, if the text arrives there. It does
/// not where the reader takes none but some words; then it must say so. Throws std::logic_error where it drops one in
/// silence.
[[nodiscard]] std::optional<Report> report_with(const Json& document, const StringField& field,
                                                const std::string& text);

}  // namespace gpubench
