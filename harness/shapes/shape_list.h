// Shapes of one's own (--shapes FILE): what a model's log, or somebody's list, says of its matrix products and
// convolutions, as cases of the suites' workloads. README.md describes the formats.
//
// A file is input from outside: whatever is malformed is refused with its line, and whatever is well-formed but cannot
// be expressed is counted and named.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/workload.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// A shape of a workload, and how often the list calls it.
struct ListedShape {
  std::string suite;     ///< "gemm"
  std::string workload;  ///< "matmul"
  Dims dims;             ///< in any order
  std::string recipe;    ///< empty: the list does not say in which precision
  double calls = 0.0;
  std::int64_t line = 0;  ///< where it is listed first, from 1
};

struct ShapeList {
  ShapesContext source;             ///< file, format, and what is not taken as it stands there
  std::vector<ListedShape> shapes;  ///< each once, in the order of the list
};

/// As many shapes as reports are designed for.
inline constexpr std::size_t max_listed_shapes = 10'000;

/// Reads a list in any of the formats, which is recognized by its content. `file` only names the source. Throws
/// UsageError "file:line: why, what was expected" for text in no known format, malformed lines, extents outside 1 to
/// 2^30, more than max_listed_shapes.
[[nodiscard]] ShapeList parse_shape_list(std::string_view text, const std::string& file);

/// The same of a file. Throws UsageError where it cannot be read.
[[nodiscard]] ShapeList read_shape_list(const std::string& file);

/// The suites with the shapes of the list as the only points of their workloads, at the lowest tier; a shape that a
/// suite has too keeps its label. A recipe that the workload lacks is one more of the list's excepts. `any_recipe`: the
/// recipes of the list do not count, as the user has named others. Throws UsageError with the line for a workload or a
/// dimension that does not exist, and for extents that make no program.
[[nodiscard]] std::vector<Suite> listed_suites(std::span<const Suite> suites, ShapeList& list, bool any_recipe);

}  // namespace gpubench
