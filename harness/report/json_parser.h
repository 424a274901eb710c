// Forward declaration of JSON, and the parser for untrusted JSON: limits before allocation, and errors with their
// place.
//
// nlohmann/json accepts a document 100,000 levels deep and crashes when copying it, keeps the last of two equal keys,
// and needs three times as long for a report of 100 MB. All input of gpubench goes through this parser; reader.h checks
// the result.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gpubench {

/// Keeps the order of keys. json.h defines the type, which takes long to compile.
using Json = nlohmann::ordered_json;

class DigestMaker;

/// Invalid input: "file:path: why".
class ReadError : public std::runtime_error {
 public:
  explicit ReadError(const std::string& what) : std::runtime_error(what) {}
};

struct ReadLimits {
  std::size_t bytes = 256U << 20U;
  int depth = 64;
  std::size_t values = std::size_t{16} << 20U;  ///< all kinds, of 16 bytes or more each
  std::size_t members = 4096;                   ///< of one object; the search is linear
};

/// An array too long to hold: each of its objects is handed over when complete, then dropped. The document keeps an
/// empty array.
struct StreamedArray {
  std::string_view parent;  ///< member of the document that contains it; empty: nothing is streamed
  std::string_view member;
  std::function<void(const Json& element, std::size_t index)> element;
};

using LeftOut = std::span<const std::string_view>;

struct HeldParts {
  LeftOut left_out;  ///< members at any depth that are only checked to be JSON and become null
  StreamedArray streamed;
  DigestMaker* digest = nullptr;  ///< takes the first `content` bytes as content_digest() does
  std::size_t content = 0;
};

/// Parses one strict JSON document. Throws ReadError with the place for input that is too large, too deep, too long or
/// malformed, for equal keys in one object and for numbers beyond fp64; and what `streamed.element` throws. `file`: for
/// messages.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view file, const HeldParts& held,
                              const ReadLimits& limits = {});
[[nodiscard]] Json parse_json(std::string_view text, std::string_view file, const ReadLimits& limits = {});

}  // namespace gpubench
