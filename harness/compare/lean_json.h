// Large reports without what nobody here reads: comparing needs the times of a case, not its check or its rates.
//
// A report of 10,000 cases is a hundred megabytes, most of it samples, checks and Google Benchmark's entries. Members
// that are not wanted are parsed and dropped at once, so that they cost neither memory nor a second look.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "harness/report/json_fwd.h"
#include "harness/report/reader.h"

namespace gpubench {

/// Which members to drop. Of two by the value of a third that stands before them: where the last text of `selector` was
/// `value`, `if_so` is dropped, elsewhere `otherwise`; nothing where `selector` is empty.
struct Dropped {
  std::span<const std::string_view> always;
  std::string_view selector{}, value{}, if_so{}, otherwise{};
};

/// An array that is too long to be held whole: each of its objects is handed over as soon as it is complete, and gone
/// afterwards; the document keeps an empty array in its place.
struct StreamedArray {
  std::string_view parent;  ///< the member of the document that holds it
  std::string_view member;  ///< its name there
  std::function<void(const Json& element, std::size_t index)> element;
};

/// As parse_json(), with the same limits, but for dropped members, at any depth: their values are not looked at beyond
/// where they end, and are null. Throws what `streamed.element` throws.
[[nodiscard]] Json parse_lean_json(std::string_view text, std::string_view file, const Dropped& dropped,
                                   const StreamedArray& streamed, const ReadLimits& limits = {});

}  // namespace gpubench
