// Everything that a report is told to, with what its output must keep to and how the output is read back.
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
  /// What is wrong with an output, "" for nothing; `harmless` is the output of the same report with a word in place of
  /// the hostile text: lines, elements, rows and cells must be as many.
  std::function<std::string(const std::string& output, const std::string& harmless)> problem;
  /// All text that the format's reader finds.
  std::function<std::string(const std::string& output)> read;
  /// The text as the reader should find it, in one way or the other.
  std::function<std::vector<std::string>(const std::string& text)> expected;
};

[[nodiscard]] const std::vector<Sink>& sinks();

// What the outputs that have no strict reader must keep to: terminals, GitHub's commands, Markdown.

/// "" where the text is UTF-8.
[[nodiscard]] std::string utf8_problem(const std::string& text);

/// The text without the colours that we use.
[[nodiscard]] std::string without_colors(std::string text);

/// Control characters but line ends and our own colours, marks that turn text, what GitHub's runner would take for a
/// command, or another number of lines than in `harmless`.
[[nodiscard]] std::string terminal_problem(const std::string& output, const std::string& harmless);

/// Lines that are not each one ::error or ::warning with a title, or another number of them.
[[nodiscard]] std::string annotations_problem(const std::string& output, const std::string& harmless);
/// Titles and messages as GitHub's runner reads them.
[[nodiscard]] std::string annotations_read(const std::string& output);

/// Markup, links, mentions, HTML or cells that are not ours: those of `harmless`, line by line.
[[nodiscard]] std::string markdown_problem(const std::string& output, const std::string& harmless);
/// The text with its entities read.
[[nodiscard]] std::string markdown_read(const std::string& output);

// Every text that a report holds, found by walking the document, so that a field that is new is found too.

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
