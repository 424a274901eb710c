#include "harness/report/anonymize.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "harness/core/file/atomic_file.h"
#include "harness/core/file/descriptor.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/reader.h"

namespace gpubench {
namespace {

constexpr std::size_t word_digits = 16;
constexpr std::size_t file_bytes = 2 * word_digits + 1;

[[noreturn]] void refuse_key(const std::string& path, std::string_view why) {
  throw ReadError(fmt::format("{}: {}", visible(path), why));
}

std::optional<std::uint64_t> hexadecimal(std::string_view digits) {
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::uint64_t word = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), word, 16);
  return error == std::errc() ? std::optional(word) : std::nullopt;
}

std::optional<HashKey> key_in(const std::string& path) {
  // O_NONBLOCK: a pipe or device with that name must not block.
  const Descriptor file(
      retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY); }));
  if (file.get() < 0 && errno == ENOENT) return std::nullopt;
  if (file.get() < 0) refuse_key(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) refuse_key(path, "is not a regular file");
  if (status.st_uid != ::geteuid() || (status.st_mode & 077U) != 0)
    refuse_key(path,
               fmt::format(
                   "other users can read or change the key (owner {}, mode {:04o}); expected a file of this user, 0600",
                   status.st_uid, status.st_mode & 07777U));
  std::array<char, file_bytes + 1> bytes{};  // one more, to detect longer files
  const auto count = retried([&] { return ::read(file.get(), bytes.data(), bytes.size()); });
  if (count != static_cast<ssize_t>(file_bytes) || bytes[file_bytes - 1] != '\n')
    refuse_key(path, "is not a key: expected 32 hexadecimal digits and a newline");
  const auto low = hexadecimal({bytes.data(), word_digits});
  const auto high = hexadecimal({bytes.data() + word_digits, word_digits});
  if (!low || !high) refuse_key(path, "is not a key: expected 32 hexadecimal digits and a newline");
  return HashKey{*low, *high};
}

HashKey new_key(const std::string& path) {
  std::array<std::uint64_t, 2> words{};
  if (retried([&] { return ::getrandom(words.data(), sizeof words, 0); }) != static_cast<ssize_t>(sizeof words))
    refuse_key(path, fmt::format("cannot generate a key: {}", std::strerror(errno)));
  return {words[0], words[1]};
}

}  // namespace

std::string default_key_file(std::string_view xdg_config_home, std::string_view home) {
  const std::filesystem::path below = std::filesystem::path("gpubench") / "anonymize.key";
  if (xdg_config_home.starts_with("/")) return (xdg_config_home / below).string();
  if (home.starts_with("/")) return (home / (".config" / below)).string();
  return {};
}

HashKey anonymize_key(const std::string& path) {
  if (const auto key = key_in(path)) return *key;
  const HashKey drawn = new_key(path);
  if (const std::string folder = std::filesystem::path(path).parent_path().string(); !folder.empty())
    make_folder(folder);
  try {
    write_atomically(path, fmt::format("{:016x}{:016x}\n", drawn.low, drawn.high));
  } catch (const WriteError&) {
    if (const auto key = key_in(path)) return *key;
    throw;
  }
  return drawn;
}

}  // namespace gpubench
