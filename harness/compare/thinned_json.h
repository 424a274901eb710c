// Large reports without what nobody here reads: comparing needs the times of a case, not its check or its rates.
//
// A report of 10,000 cases is a hundred megabytes, most of it samples, checks and Google Benchmark's entries. Members
// that are not wanted are taken out of the text, so that the parser (report/json_parser.h) never sees them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpubench {

/// Which members to drop. Of two by the value of a third that stands before them: where the last text of `selector` was
/// `value`, `if_so` is dropped, elsewhere `otherwise`; nothing where `selector` is empty.
struct Dropped {
  std::span<const std::string_view> always;
  std::string_view selector{}, value{}, if_so{}, otherwise{};
};

/// The document with null for the values of dropped members, at any depth, and without the blanks that only indent.
/// Dropped values are not looked at beyond where they end; everything else stands as it was, so that the parser sees
/// every mistake in it, though at another place.
[[nodiscard]] std::string thinned_json(std::string_view text, const Dropped& dropped);

}  // namespace gpubench
