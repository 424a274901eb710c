// All outputs of a report, with the rules for each and its reader.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/report/json.h"
#include "harness/report/report_json.h"

namespace gpubench {

struct Sink {
  std::string name;
  std::function<std::string(const Report&)> written;
  /// Errors of an output, "" for none. `harmless`: the output of the same report with a word in place of the hostile
  /// text; numbers of lines, elements, rows and cells must be equal.
  std::function<std::string(const std::string& output, const std::string& harmless)> problem;
  std::function<std::string(const std::string& output)> read;
  /// Alternatives of the text that the reader should find.
  std::function<std::vector<std::string>(const std::string& text)> expected;
};

[[nodiscard]] const std::vector<Sink>& sinks();

// Rules for outputs without a strict reader: terminals, GitHub's commands, Markdown.

/// "" for valid UTF-8.
[[nodiscard]] std::string utf8_problem(const std::string& text);

/// Removes the colors that gpubench uses.
[[nodiscard]] std::string without_colors(std::string text);

/// Rejects control characters except newlines and gpubench's colors, marks of text direction, commands of GitHub's
/// runner, and another number of lines than in `harmless`.
[[nodiscard]] std::string terminal_problem(const std::string& output, const std::string& harmless);

/// Each line must be one ::error or ::warning with a title, as many as in `harmless`.
[[nodiscard]] std::string annotations_problem(const std::string& output, const std::string& harmless);
/// Titles and messages as GitHub's runner reads them.
[[nodiscard]] std::string annotations_read(const std::string& output);

/// Rejects markup, links, mentions, HTML or cells beyond those of `harmless`, by line.
[[nodiscard]] std::string markdown_problem(const std::string& output, const std::string& harmless);
[[nodiscard]] std::string markdown_read(const std::string& output);

// All texts of a report, found by walking the document, new members included.

/// A value, or the name of a member with free names ("env", "libraries").
struct StringField {
  Json::json_pointer place;
  bool is_name = false;

  [[nodiscard]] std::string text() const { return place.to_string() + (is_name ? " (name)" : ""); }
};

/// In context and cases; `benchmarks` and totals are derived from these.
[[nodiscard]] std::vector<StringField> string_fields(const Json& document);

/// The report as read from the document with another text in one place; nothing if the reader refuses the text, as
/// where only some words are valid. Throws std::logic_error if the reader drops it silently.
[[nodiscard]] std::optional<Report> report_with(const Json& document, const StringField& field,
                                                const std::string& text);

}  // namespace gpubench
