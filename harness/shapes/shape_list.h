// Custom shapes (--shapes FILE): the matrix products and convolutions of a model's log or of a list, as cases of the
// suites' workloads. README.md describes the formats. Files are untrusted: malformed text is refused with its line;
// shapes that no workload can express are counted and named.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/workload.h"
#include "harness/report/report_json.h"

namespace gpubench {

struct ListedShape {
  std::string suite;     ///< "gemm"
  std::string workload;  ///< "matmul"
  Dims dims;             ///< in any order
  std::string recipe;    ///< empty: not in the list
  double calls = 0.0;
};

struct ShapeList {
  ShapesContext source;             ///< file, format, and exceptions
  std::vector<ListedShape> shapes;  ///< each once, in the order of the list
};

/// Limit that reports are designed for.
inline constexpr std::size_t max_listed_shapes = 10'000;

/// gpubench's JSON.
inline constexpr std::string_view own_format = "gpubench";

/// Reads a list in any of the formats, recognized by content. `file` only names the source. `folder`: of the lists that
/// benchdnn's --batch=NAME may name; empty: none. Leaves out what no workload has, and shapes beyond max_listed_shapes.
/// Throws UsageError "file:line: why, what was expected" for an unknown format, malformed lines and extents outside 1
/// to 2^30.
[[nodiscard]] ShapeList parse_shape_list(std::string_view text, const std::string& file,
                                         const std::string& folder = {});

/// Throws UsageError also if the file cannot be read.
[[nodiscard]] ShapeList read_shape_list(const std::string& file);

/// The suites with the list's shapes as the only points of their workloads, at the lowest tier; shapes that a suite has
/// keep its label. An unsupported recipe becomes an exception of the list, and so do extents that make no program.
/// `any_recipe`: ignores the list's recipes, because the user named others. In own_format, throws UsageError for an
/// unknown workload or dimension, and for extents that make no program.
[[nodiscard]] std::vector<Suite> listed_suites(std::span<const Suite> suites, ShapeList& list, bool any_recipe);

}  // namespace gpubench
