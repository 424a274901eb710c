#include "harness/shapes/shape_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/reader.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_extent = std::int64_t{1} << 30;  // so that products of two and sums of these don't overflow
constexpr double max_calls = 1e15;
constexpr std::size_t max_reasons = 100;
constexpr std::size_t max_entered = 10'000;  // oneDNN's longest list enters over 1,000
constexpr std::size_t max_depth = 16;

// The recipe of these types; empty if the list names none; none if no recipe has them.
std::optional<std::string> recipe_of(const ListedTypes& types) {
  const auto& [a, b, c, tf32] = types;
  if (a.empty() && b.empty() && c.empty()) return "";
  if (a == "f8_e4m3" && b == a && c == "bf16") return "f8_hybrid";
  if (a != b || a != c) return std::nullopt;
  if (a == "f32") return tf32 ? "tf32" : "f32";
  if (a == "f64" || a == "bf16" || a == "f16") return a;
  return std::nullopt;
}

std::string types_text(const ListedTypes& types) {
  return fmt::format("types {}, {} -> {}", shown(types.a), shown(types.b), shown(types.c));
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view rest = trimmed(text); !rest.empty(); rest = trimmed(rest)) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    words.push_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return words;
}

std::string shown(std::string_view word) {
  constexpr std::size_t most = 40;
  return visible(word.size() > most ? std::string(word.substr(0, most)) + "..." : std::string(word));
}

ShapeReader::ShapeReader(std::string_view text, const std::string& file, std::string folder)
    : folder_(std::move(folder)) {
  files_.push_back({file, without_mark(text)});
  list_.source.file = file;
}

bool ShapeReader::next() {
  std::string_view& text = files_.back().text;
  if (text.empty()) return false;
  const std::size_t end = std::min(text.find('\n'), text.size());
  line_ = trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  ++files_.back().number;
  return true;
}

bool ShapeReader::enter(std::string_view name) {
  const auto refused = [&](std::string_view why) {
    each_ = 1.0;
    leave_out(fmt::format("the list {} ({})", shown(name), why));
    return false;
  };
  if (folder_.empty() || name.empty() || name.find('/') != name.npos || name == "..")
    return refused("only lists in the folder of this one are read");
  const std::string file = folder_ + "/" + std::string(name);
  const auto is_it = [name](const File& one) { return std::filesystem::path(one.name).filename() == name; };
  if (std::ranges::any_of(files_, is_it)) return refused("it names itself");
  if (files_.size() > max_depth) return refused(fmt::format("below {} others", max_depth));
  if (entered_ == max_entered) return refused(fmt::format("after {} others", max_entered));
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return refused("not found");
  try {
    const auto [text, is_new] = texts_.try_emplace(file);
    if (is_new) text->second = read_text(file);
    files_.push_back({file, without_mark(text->second)});
  } catch (const ReadError&) {
    texts_.erase(file);
    return refused("cannot be read");
  }
  ++entered_;
  return true;
}

void ShapeReader::refuse(std::string_view why) const {
  throw UsageError(fmt::format("{}:{}: {}", visible(files_.back().name), files_.back().number, why));
}

std::int64_t ShapeReader::whole(std::string_view word, std::string_view what, std::int64_t low) const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool is_large = error == std::errc::result_out_of_range || (error == std::errc() && value > max_extent);
  if (is_large && end == word.data() + word.size())
    throw TooLarge(fmt::format("{}:{}: {} is '{}', expected at most 2^30", visible(files_.back().name),
                               files_.back().number, what, shown(word)));
  if (error != std::errc() || end != word.data() + word.size() || value < low)
    refuse(fmt::format("{} is '{}', expected a whole number from {} to 2^30", what, shown(word), low));
  return value;
}

void ShapeReader::note(std::string_view reason, double calls, bool taken) {
  const auto same = [&](const ShapesExcept& one) { return one.reason == reason && one.taken == taken; };
  auto found = std::find_if(list_.source.excepts.begin(), list_.source.excepts.end(), same);
  if (found == list_.source.excepts.end() && list_.source.excepts.size() >= max_reasons) {
    reason = "for other reasons";
    found = std::find_if(list_.source.excepts.begin(), list_.source.excepts.end(), same);
  }
  if (found == list_.source.excepts.end())
    found = list_.source.excepts.insert(found, {std::string(reason), 0.0, taken});
  found->calls += calls;
}

void ShapeReader::add(ListedShape shape) {
  shape.calls *= each_;
  if (!(shape.calls > 0.0 && shape.calls <= max_calls))
    refuse(fmt::format("{} calls, expected a number above 0 and up to {}", shape.calls, max_calls));
  const auto [place, is_new] =
      places_.try_emplace({shape.suite, shape.workload, shape.dims, shape.recipe}, list_.shapes.size());
  if (is_new && list_.shapes.size() == max_listed_shapes) {
    places_.erase(place);
    return note(fmt::format("more than {} shapes, the limit of a run", max_listed_shapes), shape.calls, false);
  }
  for (const std::string& part : missing_) note("without " + part, shape.calls, true);
  if (is_new)
    list_.shapes.push_back(std::move(shape));
  else
    list_.shapes[place->second].calls += shape.calls;
}

// A linear layer's three products, or a matmul, by the layout of the operands.
void ShapeReader::add(const ListedProduct& p, const ListedTypes& types, double calls) {
  const std::optional<std::string> recipe = recipe_of(types);
  if (!recipe) return leave_out(types_text(types), calls);
  const auto listed = [&](const char* workload, Dims dims) {
    add(ListedShape{"gemm", workload, std::move(dims), *recipe, calls});
  };
  if (p.transpose_a && p.transpose_b) return leave_out("a product of two transposed matrices", calls);
  if (p.batch > 1) {
    if (p.transpose_a || !p.transpose_b)
      return leave_out("a batched product whose second matrices are not transposed, or whose first are", calls);
    return listed("batched_matmul", {{"b", p.batch}, {"m", p.m}, {"n", p.n}, {"k", p.k}});
  }
  if (p.transpose_b) return listed("linear_forward", {{"m", p.m}, {"n", p.n}, {"k", p.k}});
  // dw [n, k] = dy [m, n]^T x [m, k]: the sum is over m.
  if (p.transpose_a) return listed("linear_backward_weight", {{"m", p.k}, {"n", p.m}, {"k", p.n}});
  listed("matmul", {{"m", p.m}, {"n", p.n}, {"k", p.k}});
}

void ShapeReader::add(const BlasProduct& p, const ListedTypes& types, double calls) {
  const std::int64_t rows_a = p.transpose_a ? p.k : p.m, rows_b = p.transpose_b ? p.n : p.k;
  const auto gap = [](std::int64_t leading, std::int64_t rows) { return leading != 0 && leading != rows; };
  if (gap(p.lda, rows_a) || gap(p.ldb, rows_b) || gap(p.ldc, p.m))
    return leave_out("matrices with gaps (a leading dimension beyond the rows)", calls);
  add(ListedProduct{p.batch, p.n, p.m, p.k, p.transpose_b, p.transpose_a}, {types.b, types.a, types.c, types.tf32},
      calls);
}

void ShapeReader::add(const ListedConvolution& c, const ListedTypes& types, double calls) {
  const std::optional<std::string> recipe = recipe_of(types);
  if (!recipe) return leave_out(types_text(types), calls);
  if (c.stride_h != c.stride_w || c.pad_h != c.pad_w || c.dilation_h != c.dilation_w)
    return leave_out("a convolution whose strides, padding or dilation differ between height and width", calls);
  const auto out = [&](std::int64_t in, std::int64_t filter) {
    return (in + 2 * c.pad_h - c.dilation_h * (filter - 1) - 1) / c.stride_h + 1;
  };
  const auto differs = [](std::int64_t listed, std::int64_t follows) { return listed != 0 && listed != follows; };
  if (differs(c.out_h, out(c.h, c.r)) || differs(c.out_w, out(c.w, c.s)))
    return leave_out("a convolution padded more on one side than on the other", calls);
  constexpr const char* workloads[] = {"conv2d_forward", "conv2d_backward_data", "conv2d_backward_filter"};
  add(ListedShape{"conv",
                  workloads[static_cast<int>(c.direction)],
                  {{"n", c.n},
                   {"h", c.h},
                   {"w", c.w},
                   {"c", c.c},
                   {"k", c.k},
                   {"r", c.r},
                   {"s", c.s},
                   {"stride", c.stride_h},
                   {"pad", c.pad_h},
                   {"dilation", c.dilation_h},
                   {"groups", c.groups}},
                  *recipe,
                  calls});
}

ShapeList ShapeReader::take(std::string_view format) {
  list_.source.format = format;
  return std::move(list_);
}

}  // namespace gpubench
