// Text made safe for the places that results go to: one function per sink, and no other way in.
//
// Names and reasons come from files, libraries and devices. In each sink they must stay text: no markup, no command, no
// formula, no second line.
#pragma once

#include <string>
#include <string_view>

namespace gpubench {

/// Text of an XML 1.0 element or of an attribute in double quotes. Characters that XML cannot hold are made visible.
[[nodiscard]] std::string xml_text(std::string_view text);

/// The same for text of our own of several lines, which stay lines: whatever is untrusted in it is printable() already.
[[nodiscard]] std::string xml_lines(std::string_view text);

/// A cell of a Markdown table, GitHub's too: nothing in it is markup, HTML, a link, a mention or an end of the cell.
[[nodiscard]] std::string markdown_cell(std::string_view text);

/// The message of a GitHub workflow command (::error ...::message).
[[nodiscard]] std::string github_message(std::string_view text);
/// The value of a property of such a command (title=...).
[[nodiscard]] std::string github_property(std::string_view text);

/// A cell of CSV (RFC 4180) on one line, quoted where needed. Table programs may run what starts as a formula does: an
/// apostrophe before it says that it is text (OWASP, "CSV Injection"); so too before an apostrophe that was there.
[[nodiscard]] std::string csv_cell(std::string_view text);

/// The value of a label in Prometheus' text format, without its quotes.
[[nodiscard]] std::string prometheus_label(std::string_view text);

}  // namespace gpubench
