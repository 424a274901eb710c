#include "harness/report/content_digest.h"

#include <fmt/format.h>

#include <cstdint>

#include "harness/core/hash.h"
#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr std::string_view digest_key = "\"digest\"";
constexpr std::size_t digest_digits = 16;

constexpr bool separates(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Takes bytes one by one and mixes them in by words.
class Mixer {
 public:
  void take(char c) {
    word_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << (8U * (bytes_ % 8U));
    if (++bytes_ % 8U != 0) return;
    state_ = hash_at(state_, word_);
    word_ = 0;
  }
  [[nodiscard]] std::uint64_t result() const { return hash_at(hash_at(state_, word_), bytes_); }

 private:
  std::uint64_t state_ = 0;
  std::uint64_t word_ = 0;
  std::uint64_t bytes_ = 0;
};

std::string_view without_blanks_at_end(std::string_view text) {
  while (!text.empty() && separates(text.back())) text.remove_suffix(1);
  return text;
}

// Cuts `end` off, and blanks before it. False where the text ends otherwise.
bool cut(std::string_view& text, std::string_view end) {
  text = without_blanks_at_end(text);
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

bool is_digest(std::string_view text) {
  return text.size() == digest_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// What is before the last member of the document, and its digest; false where that is none.
bool split(std::string_view text, std::string_view& content, std::string_view& digest) {
  if (!cut(text, "}") || !cut(text, "\"") || text.size() < digest_digits) return false;
  digest = text.substr(text.size() - digest_digits);
  text.remove_suffix(digest_digits);
  if (!is_digest(digest) || !cut(text, "\"") || !cut(text, ":") || !cut(text, digest_key) || !cut(text, ","))
    return false;
  content = text;
  return true;
}

}  // namespace

std::string content_digest(std::string_view text) {
  Mixer mixer;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_text && separates(c)) continue;
    mixer.take(c);
    if (c == '"') in_text = !in_text;
    if (in_text && c == '\\' && i + 1 < text.size()) mixer.take(text[++i]);
  }
  return fmt::format("{:016x}", mixer.result());
}

std::string sealed_text(const Json& document, int indent) {
  std::string text = dump(document, indent);
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

Seal seal_of(std::string_view text) {
  std::string_view content, digest;
  if (!split(text, content, digest)) return Seal::none;
  return content_digest(content) == digest ? Seal::holds : Seal::broken;
}

std::string broken_seal_text(std::string_view file) {
  return fmt::format("{}:digest: is not that of the content: the file was changed after it was written", visible(file));
}

}  // namespace gpubench
