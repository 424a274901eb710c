// A table of texts, key -> value, kept in a file: what a version of a library answered.
#pragma once

#include <map>
#include <string>

namespace gpubench::cuda {

using GoldenRows = std::map<std::string, std::string>;

class GoldenTable {
 public:
  /// Rows of `file`, "key<TAB>value" each; none where there is no such file.
  explicit GoldenTable(std::string file);
  [[nodiscard]] bool exists() const { return exists_; }
  /// The rows whose keys begin with `prefix`.
  [[nodiscard]] GoldenRows rows(const std::string& prefix) const;
  /// Puts `rows` in the place of those whose keys begin with `prefix`, and writes the file.
  void replace(const std::string& prefix, const GoldenRows& rows);

 private:
  std::string file_;
  bool exists_ = false;
  GoldenRows rows_;
};

}  // namespace gpubench::cuda
