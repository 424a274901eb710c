// Markdown that keeps a limit in bytes: a table is cut between rows, never within one.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace gpubench {

/// `head`, then rows as far as they fit into `most_bytes` with it, then how many of the `count` are left out. `row`
/// makes the row of an index, with its newline. A head that is too long itself is cut between lines.
[[nodiscard]] std::string with_rows(std::string head, std::size_t count,
                                    const std::function<std::string(std::size_t)>& row, std::size_t most_bytes);

}  // namespace gpubench
