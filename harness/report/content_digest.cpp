#include "harness/report/content_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/core/hash.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

constexpr std::string_view digest_key = "\"digest\"";
constexpr std::size_t digest_digits = 16;

constexpr bool separates(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The position after the string that begins at `at`.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
  }
  return at;
}

std::string_view without_blanks_at_end(std::string_view text) {
  while (!text.empty() && separates(text.back())) text.remove_suffix(1);
  return text;
}

// Removes `end` and preceding blanks. False if the text ends otherwise.
bool cut(std::string_view& text, std::string_view end) {
  text = without_blanks_at_end(text);
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

bool is_digest(std::string_view text) {
  return text.size() == digest_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::uint64_t DigestMaker::word_at(std::size_t at) const {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t word = 0;
  std::memcpy(&word, block_.data() + at, word_bytes);
  return word;
}

void DigestMaker::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t some = std::min(bytes.size(), block_.size() - gathered_);
    std::memcpy(block_.data() + gathered_, bytes.data(), some);
    gathered_ += some;
    bytes.remove_prefix(some);
    if (gathered_ == block_.size()) mix_in(block_.size());
  }
}

std::string DigestMaker::digest() {
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(gathered_), block_.end(), '\0');
  const std::size_t whole = gathered_ / word_bytes * word_bytes;
  const std::uint64_t last = whole == gathered_ ? 0 : word_at(whole), taken = mixed_ + gathered_;
  mix_in(whole);
  return fmt::format("{:016x}", hash_at(hash_at(state_, last), taken));
}

void DigestMaker::mix_in(std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += word_bytes) state_ = hash_at(state_, word_at(at));
  mixed_ += bytes;
  gathered_ = 0;
}

std::string content_digest(std::string_view text) {
  DigestMaker maker;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && !separates(text[at])) at = text[at] == '"' ? after_string(text, at) : at + 1;
    maker.take(text.substr(begin, at - begin));
    while (at < text.size() && separates(text[at])) ++at;
  }
  return maker.digest();
}

std::string sealed_text(const Json& document, int indent) { return with_digest(dump(document, indent), indent); }

std::string with_digest(std::string text, int indent) {
  std::string_view content = text;
  cut(content, "}");
  content = without_blanks_at_end(content);
  const std::string digest = content_digest(content);
  text.resize(content.size());
  const std::string line = indent < 0 ? "" : "\n";
  text +=
      fmt::format(",{}{}{}:{}\"{}\"{}}}\n", line, std::string(indent < 0 ? 0 : static_cast<std::size_t>(indent), ' '),
                  digest_key, indent < 0 ? "" : " ", digest, line);
  return text;
}

std::optional<Sealed> sealed_parts(std::string_view text) {
  if (!cut(text, "}") || !cut(text, "\"") || text.size() < digest_digits) return std::nullopt;
  const std::string_view digest = text.substr(text.size() - digest_digits);
  text.remove_suffix(digest_digits);
  if (!is_digest(digest) || !cut(text, "\"") || !cut(text, ":") || !cut(text, digest_key) || !cut(text, ","))
    return std::nullopt;
  return Sealed{text, digest};
}

Seal seal_of(std::string_view text) {
  const std::optional<Sealed> parts = sealed_parts(text);
  if (!parts) return Seal::none;
  return content_digest(parts->content) == parts->digest ? Seal::holds : Seal::broken;
}

std::string broken_seal_text(std::string_view file) {
  return fmt::format("{}:digest: does not match the content: the file was changed after it was written", visible(file));
}

}  // namespace gpubench
