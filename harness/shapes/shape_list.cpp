// Recognition of formats; gpubench's JSON format; exceptions in words.
#include "harness/shapes/shape_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/shapes/shape_reader.h"

namespace gpubench {
namespace {

// benchdnn's problems have no keyword, so that format is tried last.
const ShapeFormat* const formats[] = {&onednn_verbose_format, &cublaslt_format,  &cublas_format,
                                      &rocblas_format,        &deepbench_format, &benchdnn_format};

constexpr std::string_view known_formats =
    R"(JSON ({"shapes": [...]}), ONEDNN_VERBOSE, cuBLAS, cuBLASLt or rocBLAS logs, DeepBench lists, benchdnn problems)";

constexpr std::string_view gpubench_members[] = {"suite", "workload", "params", "recipe", "calls"};

// {"shapes": [{"suite": "gemm", "workload": "matmul", "params": {"m": 64, "n": 64, "k": 64}, "recipe": "bf16",
// "calls": 24}]}
void read_gpubench_list(const Node& document, ShapeReader& reader) {
  for (const auto& [name, value] : document.members()) {
    if (name != "shapes") value.refuse("is not a member of a list of shapes; expected only shapes");
  }
  const Node shapes = document.at("shapes");
  for (std::size_t i = 0; i < shapes.length(); ++i) {
    const Node one = shapes.at(i);
    for (const auto& [name, value] : one.members()) {
      if (std::find(std::begin(gpubench_members), std::end(gpubench_members), name) == std::end(gpubench_members))
        value.refuse("is not a member of a shape; expected suite, workload, params, recipe, calls");
    }
    ListedShape shape{one.at("suite").text(), one.at("workload").text(), {}, "", 1.0};
    constexpr std::int64_t most = std::int64_t{1} << 30;
    for (const auto& [name, value] : one.at("params").members()) shape.dims.emplace_back(name, value.integer(0, most));
    if (one.has("recipe")) shape.recipe = one.at("recipe").text();
    if (one.has("calls")) shape.calls = one.at("calls").number();
    try {
      reader.add(std::move(shape));
    } catch (const UsageError&) {
      one.refuse("is not allowed: expected calls above 0 and up to 1e15");
    }
  }
}

const ShapeFormat& format_of(std::string_view text, const std::string& file) {
  ShapeReader lines(text, file);
  std::string first;
  bool has_comments = false;
  while (lines.next()) {
    for (const ShapeFormat* format : formats) {
      if (format->recognizes(lines.line())) return *format;
    }
    if (lines.line().starts_with('#'))
      has_comments = true;
    else if (first.empty())
      first = shown(lines.line());
  }
  if (has_comments && first.empty()) return benchdnn_format;  // some of oneDNN's lists have nothing else
  throw UsageError(fmt::format("{}: unknown format: {}{}; expected one of {}", visible(file),
                               first.empty() ? "the file is empty" : "the file begins with ", first, known_formats));
}

}  // namespace

ShapeList parse_shape_list(std::string_view text, const std::string& file, const std::string& folder) {
  ShapeReader reader(text, file, folder);
  if (trimmed(text).starts_with('{')) {
    try {
      const Json document = parse_json(text, file);
      read_gpubench_list(Node(document, visible(file)), reader);
    } catch (const ReadError& e) {
      throw UsageError(e.what());
    }
    return reader.take(own_format);
  }
  const ShapeFormat& format = format_of(text, file);
  format.read(reader);
  return reader.take(format.name);
}

ShapeList read_shape_list(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored))
    throw UsageError(fmt::format("{}: expected a file, which workers can read as well", visible(file)));
  try {
    const std::string folder = std::filesystem::path(file).parent_path().string();
    return parse_shape_list(read_text(file), file, folder.empty() ? "." : folder);
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace gpubench
