// Reports without what identifies a machine or its user.
//
// Host names, a GPU's UUID and bus id, users and paths become a word and 16 hexadecimal digits, hashed under a key
// (anonymize_key.h): the same name gives the same word, so that reports of one machine still count as such. What is
// kept is told in README.md. tests/harness/report/anonymize_test.cpp lists what becomes of each text of a report: one
// that is new there needs a decision here.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/report/anonymize_key.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// The flags that stay in the command lines and variables of a report: those that choose and measure.
struct KeptFlags {
  std::vector<std::string> values;    ///< with a value that stays as well
  std::vector<std::string> switches;  ///< without one
  std::vector<std::string> files;     ///< with a file or folder, which becomes a hash
};

class Anonymizer {
 public:
  /// Knows the names in the context of `report`: of the host, its devices, users by their folders; `users` are more.
  Anonymizer(const HashKey& key, KeptFlags flags, const Report& report, std::vector<std::string> users = {});

  /// Everything but the cases.
  void context(Report& report) const;
  void record(CaseRecord& record) const;
  /// A sentence without names and absolute paths.
  [[nodiscard]] std::string text(std::string_view text) const;
  /// The kept flags of a command line, files as hashes.
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& words) const;
  /// "path-0123456789abcdef"
  [[nodiscard]] std::string path(std::string_view path) const { return alias("path", path); }

 private:
  [[nodiscard]] std::string alias(std::string_view kind, std::string_view name) const;
  void know(std::string_view kind, const std::string& name);
  void know_users_in(std::string_view text);
  [[nodiscard]] std::string variable(const std::string& name, const std::string& value) const;
  [[nodiscard]] std::string property(const std::string& name, const std::string& value) const;

  HashKey key_;
  KeptFlags flags_;
  std::vector<std::pair<std::string, std::string>> names_;  ///< name -> what stands for it, the longest first
};

/// The whole report.
[[nodiscard]] Report anonymized(Report report, const HashKey& key, KeptFlags flags,
                                std::vector<std::string> users = {});

}  // namespace gpubench
