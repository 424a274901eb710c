// The digest that a document carries of itself: whether it still says what was written.
//
// It reveals changes by hand or by a disk, and is not a signature: anyone who changes a file on purpose can recompute
// it. It is the document's last member and covers its bytes up to that member, except blanks outside texts, so that a
// file can be reindented.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/report/json_parser.h"

namespace gpubench {

/// Makes the digest of bytes that come piece by piece: eight at a time (little-endian, zeros after the last), each word
/// mixed into what came before it by harness/core/hash.h's hash_at(); last their number.
class DigestMaker {
 public:
  void take(std::string_view bytes);
  /// 16 hexadecimal digits, of all that was taken.
  [[nodiscard]] std::string digest();

 private:
  static constexpr std::size_t word_bytes = 8;
  [[nodiscard]] std::uint64_t word_at(std::size_t at) const;
  void mix_in(std::size_t bytes);

  std::uint64_t state_ = 0;
  std::uint64_t mixed_ = 0;
  std::size_t gathered_ = 0;
  std::array<char, 4096> block_{};
};

/// The digest of the bytes except blanks outside texts.
[[nodiscard]] std::string content_digest(std::string_view text);

/// The document, an object with at least one member, as text with its digest as the last member and a line's end.
/// `indent` as for dump().
[[nodiscard]] std::string sealed_text(const Json& document, int indent = -1);
/// The same of a document's text.
[[nodiscard]] std::string with_digest(std::string text, int indent);

/// A document whose last member is a digest: what that should be of, and what it says.
struct Sealed {
  std::string_view content;
  std::string_view digest;
};
[[nodiscard]] std::optional<Sealed> sealed_parts(std::string_view text);

enum class Seal {
  none,   ///< its last member is no digest
  holds,  ///< the content is what it was written as
  broken  ///< the content was changed since
};
[[nodiscard]] Seal seal_of(std::string_view text);

/// What is wrong with a file whose seal is broken, as "file:digest: why".
[[nodiscard]] std::string broken_seal_text(std::string_view file);

}  // namespace gpubench
