// Removes identifying details from reports.
//
// Host names, a GPU's UUID and bus id, users and paths become a word and 16 hexadecimal digits of a keyed hash. A name
// always gives the same word, so reports of one machine stay comparable. harness/report/README.md lists the texts that
// are kept. tests/harness/report/anonymize_test.cpp lists the result for each text of a report; a new text must be
// added there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/report/report_json.h"

namespace gpubench {

// The key belongs to the user, in a file that nobody else can read. With one key a machine has the same name in all
// reports. With the key, names can be found by trying them; without it, they cannot. A lost key means new names.
/// 128 bits, as two little-endian words (as in the paper below).
struct HashKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// SipHash-2-4: without the key, hashes of guessed names are useless (Aumasson, Bernstein, "SipHash: a fast short-input
/// PRF", 2012).
[[nodiscard]] constexpr std::uint64_t keyed_hash(const HashKey& key, std::string_view bytes) {
  std::uint64_t v0 = key.low ^ 0x736f6d6570736575ULL, v1 = key.high ^ 0x646f72616e646f6dULL;
  std::uint64_t v2 = key.low ^ 0x6c7967656e657261ULL, v3 = key.high ^ 0x7465646279746573ULL;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8U * (i % 8U));
    if (i % 8U == 7U) {
      take(word);
      word = 0;
    }
  }
  take(word | static_cast<std::uint64_t>(bytes.size()) << 56U);
  v2 ^= 0xffU;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

/// $XDG_CONFIG_HOME/gpubench/anonymize.key, else ~/.config/gpubench/anonymize.key; "" if neither folder is known.
[[nodiscard]] std::string default_key_file(std::string_view xdg_config_home, std::string_view home);

/// Reads a key: 32 hexadecimal digits and a newline. Generates and stores one (0600) if the file does not exist. Throws
/// ReadError for invalid content, and for a file that other users can read or write; WriteError if a new key cannot be
/// stored.
[[nodiscard]] HashKey anonymize_key(const std::string& path);

/// Flags kept in command lines and variables: those that select and measure.
struct KeptFlags {
  std::vector<std::string> values;  ///< the value is kept
  std::vector<std::string> switches;
  std::vector<std::string> files;      ///< the value, a file or folder, becomes a hash
  std::vector<std::string> outputs{};  ///< files and folders, removed
  std::vector<std::string> words{};    ///< gpubench's vocabulary: never hashed, even as a folder name
};

class Anonymizer {
 public:
  /// Collects the names in the context of `report`: host, devices, users by their folders, and parts of paths on the
  /// command line. `users`: more names.
  Anonymizer(const HashKey& key, KeptFlags flags, const Report& report, std::vector<std::string> users = {});

  void context(Report& report) const;
  void record(CaseRecord& record) const;
  /// Replaces names, mail addresses, and paths that are absolute, end in a file with an extension, or have a known
  /// part.
  [[nodiscard]] std::string text(std::string_view text) const;
  /// The kept flags, with files hashed.
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& words) const;
  /// "path-0123456789abcdef"
  [[nodiscard]] std::string path(std::string_view path) const { return alias("path", path); }

 private:
  [[nodiscard]] std::string alias(std::string_view kind, std::string_view name) const;
  void know(std::string_view kind, const std::string& name);
  void know_host(const std::string& name);
  void know_users_in(std::string_view text);
  void know_files_in(const std::vector<std::string>& words);
  void know_file(std::string_view path);
  [[nodiscard]] std::size_t relative_path_at(std::string_view text) const;
  [[nodiscard]] std::string variable(const std::string& name, const std::string& value) const;
  [[nodiscard]] std::string property(const std::string& name, const std::string& value) const;

  HashKey key_;
  KeptFlags flags_;
  std::vector<std::pair<std::string, std::string>> names_;  ///< name -> replacement, longest first
  std::vector<std::string> facts_;                          ///< of build and devices; their words are kept
  std::vector<std::string> parts_;  ///< of paths on the command line, in lower case: "acme-cluster", "kernel.py"
};

[[nodiscard]] Report anonymized(Report report, const HashKey& key, KeptFlags flags,
                                std::vector<std::string> users = {});

}  // namespace gpubench
