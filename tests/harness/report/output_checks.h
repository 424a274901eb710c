// What the outputs that have no strict reader must keep to: terminals, GitHub's commands, Markdown.
#pragma once

#include <string>

namespace gpubench {

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

}  // namespace gpubench
