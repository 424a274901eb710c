// The digest that a document carries of itself: whether it still says what was written.
//
// It tells of a change, by hand or by a disk, and is no signature: whoever changes a file on purpose can work it out
// anew. It is the document's last member, over its bytes up to that member but for blanks outside texts: indenting a
// file anew changes nothing.
#pragma once

#include <string>
#include <string_view>

#include "harness/report/json_fwd.h"

namespace gpubench {

/// 16 hexadecimal digits: the bytes but for blanks outside texts, eight at a time (little-endian, zeros after the
/// last), each word mixed into what came before it by harness/core/hash.h's hash_at(); last their number.
[[nodiscard]] std::string content_digest(std::string_view text);

/// The document, an object with at least one member, as text with its digest as the last member and a line's end.
/// `indent` as for dump().
[[nodiscard]] std::string sealed_text(const Json& document, int indent = -1);

enum class Seal {
  none,   ///< its last member is no digest
  holds,  ///< the content is what it was written as
  broken  ///< the content was changed since
};
[[nodiscard]] Seal seal_of(std::string_view text);

/// What is wrong with a file whose seal is broken, as "file:digest: why".
[[nodiscard]] std::string broken_seal_text(std::string_view file);

}  // namespace gpubench
