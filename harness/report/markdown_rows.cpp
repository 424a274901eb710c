#include "harness/report/markdown_rows.h"

#include <fmt/format.h>

namespace gpubench {

std::string with_rows(std::string head, std::size_t count, const std::function<std::string(std::size_t)>& row,
                      std::size_t most_bytes) {
  constexpr std::size_t spare = 200;  // for the line that counts what is left out
  if (head.size() > most_bytes) {
    const std::size_t end = most_bytes == 0 ? std::string::npos : head.rfind('\n', most_bytes - 1);
    return head.substr(0, end == std::string::npos ? 0 : end + 1);
  }
  std::string text = std::move(head);
  std::size_t rows = 0;
  for (; rows < count; ++rows) {
    const std::string next = row(rows);
    if (text.size() + next.size() + spare > most_bytes) break;
    text += next;
  }
  const std::string rest = rows < count ? fmt::format("\n{} more cases are left out here.\n", count - rows) : "";
  return text.size() + rest.size() <= most_bytes ? text + rest : text;
}

}  // namespace gpubench
