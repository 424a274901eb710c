// Untrusted text made safe for where it goes: device names, library messages and file contents never steer a terminal,
// and stay text in every other sink: no markup, no command, no formula, no second line.
#pragma once

#include <string>
#include <string_view>

namespace gpubench {

/// Control characters (C0, DEL, C1), bidirectional controls, invisible characters (byte order marks, tags,
/// noncharacters) and bytes that are not UTF-8 become \xNN, one per byte; everything else stays. The result is one
/// line.
[[nodiscard]] std::string printable(std::string_view text);

/// printable(), and no command on any line of a log: GitHub's runner takes `##[` anywhere for one, and `::` after no
/// more than white space (actions/runner, ActionCommand.cs). That `[` is written as \xNN, and so is the first `:`
/// unless a word ends before it, as in `cutlass::gemm`: lines may be wrapped at any blank.
[[nodiscard]] std::string visible(std::string_view text);

/// At most `max_bytes` of `text`; what is cut ends in "..." after a whole code point.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t max_bytes);

/// Columns that `text` takes on a terminal, one per code point. ANSI colours must not be in it yet.
[[nodiscard]] int columns(std::string_view text);

/// The part of `text` that takes at most `most` columns.
[[nodiscard]] std::string_view first_columns(std::string_view text, int most);

// One function per sink.

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
