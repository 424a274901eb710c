// GitHub Actions: annotations on a step, and its summary. The limits are GitHub's own.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/report_json.h"

namespace gpubench {

enum class AnnotationKind { error, warning };

struct Annotation {
  AnnotationKind kind = AnnotationKind::error;
  std::string title;
  std::string message;
};

/// Workflow commands, one a line: nine of a kind at most, then one that counts the others under the title `rest`
/// (GitHub shows ten of a kind per step). Messages are cut at 4 KB.
[[nodiscard]] std::string annotations_text(std::span<const Annotation> annotations, std::string_view rest);

/// Of a run: an error for each case that went wrong, worst first; a warning for a run that was interrupted, that
/// verified nothing or that ran nothing.
[[nodiscard]] std::vector<Annotation> annotations_of(const Report& report);

/// A step's summary of more than 1024 KiB is dropped whole; this is as much as we let it become.
inline constexpr std::size_t most_summary_bytes = 900U << 10U;

/// Adds what `text` gives for the room that is left to the step's summary, which other commands of the step may have
/// begun. Nothing where there is no room. Throws WriteError where it cannot be written, or where the path names
/// something other than a file; then the file is as before.
void append_summary(const std::string& path, const std::function<std::string(std::size_t room)>& text);

}  // namespace gpubench
