// The digest that a document carries as its last member.
//
// It reveals accidental changes and manual edits. It is not a signature: anyone can recompute it. It covers the bytes
// before that member except blanks outside strings, so that files can be reindented.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/report/json_parser.h"

namespace gpubench {

/// Takes bytes in pieces: words of eight bytes (little-endian, padded with zeros) are mixed into the state with
/// hash_at() (harness/core/hash.h), and finally their number.
class DigestMaker {
 public:
  void take(std::string_view bytes);
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

/// Skips blanks outside strings.
[[nodiscard]] std::string content_digest(std::string_view text);

/// The text of an object with at least one member, with its digest as last member and a newline. `indent` as for
/// dump().
[[nodiscard]] std::string sealed_text(const Json& document, int indent = -1);
[[nodiscard]] std::string with_digest(std::string text, int indent);

/// A document whose last member is a digest: the content it covers, and the digest.
struct Sealed {
  std::string_view content;
  std::string_view digest;
};
[[nodiscard]] std::optional<Sealed> sealed_parts(std::string_view text);

enum class Seal { none, holds, broken };
[[nodiscard]] Seal seal_of(std::string_view text);

/// "file:digest: why", for a broken seal.
[[nodiscard]] std::string broken_seal_text(std::string_view file);

}  // namespace gpubench
