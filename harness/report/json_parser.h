// JSON by name, and the one parser for JSON from outside: limits before memory, and errors that name the place.
//
// nlohmann/json alone accepts a document a hundred thousand levels deep (and crashes when copying it), lets the last of
// two equal keys win, and takes three times as long for a report of a hundred megabytes, whether or not its parts are
// wanted. Everything that gpubench reads goes through here; reader.h checks the result.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gpubench {

/// A JSON document; its keys stay in the order in which they were written. json.h has the type itself, which takes long
/// to compile.
using Json = nlohmann::ordered_json;

class DigestMaker;

/// Input that is not what it should be: "file:path: why".
class ReadError : public std::runtime_error {
 public:
  explicit ReadError(const std::string& what) : std::runtime_error(what) {}
};

struct ReadLimits {
  std::size_t bytes = 256U << 20U;
  int depth = 64;
  std::size_t values = std::size_t{16} << 20U;  ///< of all kinds together: each takes 16 bytes or more
  std::size_t members = 4096;                   ///< of one object: they are searched one by one
};

/// An array that is too long to be held whole: each of its objects is handed over as soon as it is complete, and gone
/// afterwards; the document keeps an empty array in its place.
struct StreamedArray {
  std::string_view parent;  ///< the member of the document that holds it; empty: nothing is streamed
  std::string_view member;  ///< its name there
  std::function<void(const Json& element, std::size_t index)> element;
};

/// Names of members to skip, at any depth.
using LeftOut = std::span<const std::string_view>;

/// What of a document is held.
struct HeldParts {
  LeftOut left_out;  ///< values that are only checked to be JSON; null takes their place
  StreamedArray streamed;
  DigestMaker* digest = nullptr;  ///< takes the first `content` bytes of the text as content_digest() does
  std::size_t content = 0;
};

/// Parses one strict JSON document. Throws ReadError for anything too large, too deep, too many, malformed, with equal
/// keys in one object, or with numbers beyond fp64, naming the place that the parser had come to; and what
/// `streamed.element` throws. `file` only names the source in messages.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view file, const HeldParts& held,
                              const ReadLimits& limits = {});
[[nodiscard]] Json parse_json(std::string_view text, std::string_view file, const ReadLimits& limits = {});

}  // namespace gpubench
