#include "tests/reference/cuda/suite_graphs.h"

#include <fstream>
#include <utility>

namespace gpubench::cuda {

GoldenTable::GoldenTable(std::string file) : file_(std::move(file)) {
  std::ifstream in(file_);
  exists_ = in.is_open();
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t tab = line.rfind('\t');
    if (tab != std::string::npos) rows_[line.substr(0, tab)] = line.substr(tab + 1);
  }
}

GoldenRows GoldenTable::rows(const std::string& prefix) const {
  GoldenRows found;
  for (const auto& [key, value] : rows_) {
    if (key.rfind(prefix, 0) == 0) found[key] = value;
  }
  return found;
}

void GoldenTable::replace(const std::string& prefix, const GoldenRows& rows) {
  std::erase_if(rows_, [&](const auto& row) { return row.first.rfind(prefix, 0) == 0; });
  rows_.insert(rows.begin(), rows.end());
  std::ofstream out(file_);
  for (const auto& [key, value] : rows_) out << key << '\t' << value << '\n';
}

}  // namespace gpubench::cuda
