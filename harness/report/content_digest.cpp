#include "harness/report/content_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "harness/core/hash.h"
#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr std::string_view digest_key = "\"digest\"";
constexpr std::size_t digest_digits = 16;

constexpr std::array<bool, 256> blanks = [] {
  std::array<bool, 256> all{};
  for (const unsigned char c : {' ', '\n', '\r', '\t'}) all[c] = true;
  return all;
}();

constexpr bool separates(char c) { return blanks[static_cast<unsigned char>(c)]; }

// Mixes bytes in by words of eight, the first byte the lowest. They are gathered before: a report of 10,000 cases has a
// hundred megabytes, most of it numbers of a few digits behind blanks.
class Mixer {
 public:
  void take(std::string_view bytes) {
    in_pieces(bytes, [this](std::string_view piece) {
      std::memcpy(block_.data() + gathered_, piece.data(), piece.size());
      gathered_ += piece.size();
    });
  }
  void take_without_blanks(std::string_view bytes) {
    in_pieces(bytes, [this](std::string_view piece) {
      std::size_t to = gathered_;
      for (const char c : piece) {  // without a branch, since blanks come at no regular distance
        block_[to] = c;
        to += separates(c) ? 0 : 1;
      }
      gathered_ = to;
    });
  }
  [[nodiscard]] std::uint64_t result() {
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(gathered_), block_.end(), '\0');
    const std::size_t whole = gathered_ / word_bytes * word_bytes;
    for (std::size_t at = 0; at < whole; at += word_bytes) state_ = hash_at(state_, word_at(at));
    return hash_at(hash_at(state_, whole == gathered_ ? 0 : word_at(whole)), mixed_ + gathered_);
  }

 private:
  static constexpr std::size_t word_bytes = 8;

  // `take_piece` is given what there is room for.
  template <class TakePiece>
  void in_pieces(std::string_view bytes, const TakePiece& take_piece) {
    while (!bytes.empty()) {
      const std::size_t some = std::min(bytes.size(), block_.size() - gathered_);
      take_piece(bytes.substr(0, some));
      bytes.remove_prefix(some);
      if (gathered_ == block_.size()) mix_in();
    }
  }
  [[nodiscard]] std::uint64_t word_at(std::size_t at) const {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < word_bytes; ++i)
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(block_[at + i])) << (8U * i);
    return word;
  }
  void mix_in() {
    for (std::size_t at = 0; at < block_.size(); at += word_bytes) state_ = hash_at(state_, word_at(at));
    mixed_ += block_.size();
    gathered_ = 0;
  }

  std::uint64_t state_ = 0;
  std::uint64_t mixed_ = 0;
  std::size_t gathered_ = 0;
  std::array<char, 4096> block_{};
};

// What follows the string that begins at `at`.
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
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t quote = std::min(text.find('"', at), text.size());
    mixer.take_without_blanks(text.substr(at, quote - at));
    at = quote == text.size() ? quote : after_string(text, quote);
    mixer.take(text.substr(quote, at - quote));
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
