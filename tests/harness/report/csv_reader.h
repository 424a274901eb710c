// CSV as RFC 4180, section 2, has it, strictly: CRLF ends each record, a quoted cell doubles its quotes, others have
// none.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

using CsvRow = std::vector<std::string>;

/// Throws std::runtime_error for what is no CSV.
inline std::vector<CsvRow> csv_rows(std::string_view text) {
  std::vector<CsvRow> rows;
  std::size_t at = 0;
  while (at < text.size()) {
    CsvRow row;
    while (true) {
      std::string cell;
      if (at < text.size() && text[at] == '"') {
        for (++at; at < text.size(); ++at) {
          if (text[at] == '"' && (at + 1 >= text.size() || text[at + 1] != '"')) break;
          if (text[at] == '"') ++at;
          cell += text[at];
        }
        if (at >= text.size()) throw std::runtime_error("a quote that never ends");
        ++at;
      } else {
        while (at < text.size() && text[at] != ',' && text[at] != '\r') {
          if (text[at] == '"' || text[at] == '\n') throw std::runtime_error("a bare quote or newline");
          cell += text[at++];
        }
      }
      row.push_back(cell);
      if (at < text.size() && text[at] == ',') {
        ++at;
        continue;
      }
      if (text.substr(at, 2) != "\r\n") throw std::runtime_error("a record without CRLF");
      at += 2;
      break;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gpubench
