// Untrusted text (device names, library messages, file contents) made safe for each sink: no terminal control, markup,
// command, formula or second line.
#pragma once

#include <string>
#include <string_view>

namespace gpubench {

/// Control characters (C0, DEL, C1), bidirectional controls, invisible characters (byte order marks, tags,
/// noncharacters) and bytes that are not UTF-8 become \xNN, one per byte. The result is one line.
[[nodiscard]] std::string printable(std::string_view text);

/// printable(), without a command on any line of a log: GitHub's runner accepts `##[` anywhere, and `::` after only
/// white space (actions/runner, ActionCommand.cs). That `[` becomes \xNN, and so does the first `:` unless a word ends
/// before it, as in `cutlass::gemm`: lines may be wrapped at any blank.
[[nodiscard]] std::string visible(std::string_view text);

/// At most `max_bytes` of `text`, cut after a whole code point, with "...".
[[nodiscard]] std::string shortened(std::string_view text, std::size_t max_bytes);

/// Columns of `text` on a terminal, one per code point. `text` must not contain ANSI colours.
[[nodiscard]] int columns(std::string_view text);

/// The longest prefix of `text` of at most `most` columns.
[[nodiscard]] std::string_view first_columns(std::string_view text, int most);

/// Text of an XML 1.0 element or double-quoted attribute. Characters invalid in XML are made visible.
[[nodiscard]] std::string xml_text(std::string_view text);

/// xml_text() that keeps line ends: untrusted parts must already be printable().
[[nodiscard]] std::string xml_lines(std::string_view text);

/// A cell of a Markdown table, also for GitHub: no markup, HTML, link, mention or end of the cell.
[[nodiscard]] std::string markdown_cell(std::string_view text);

/// The message of a GitHub workflow command (::error ...::message).
[[nodiscard]] std::string github_message(std::string_view text);
/// The value of a property of such a command (title=...).
[[nodiscard]] std::string github_property(std::string_view text);

/// A CSV cell (RFC 4180) on one line, quoted if needed. Spreadsheets may run text that starts like a formula: an
/// apostrophe is put before it (OWASP, "CSV Injection"), and before an existing apostrophe.
[[nodiscard]] std::string csv_cell(std::string_view text);

/// A label value in Prometheus' text format, without its quotes.
[[nodiscard]] std::string prometheus_label(std::string_view text);

}  // namespace gpubench
