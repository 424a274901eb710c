#include "harness/shapes/shape_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_extent = std::int64_t{1} << 30;  // so that products of two and sums of these don't overflow
constexpr double max_calls = 1e15;
constexpr std::size_t max_reasons = 100;

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

bool ShapeReader::next() {
  if (text_.empty()) return false;
  const std::size_t end = std::min(text_.find('\n'), text_.size());
  line_ = trimmed(text_.substr(0, end));
  text_.remove_prefix(std::min(end + 1, text_.size()));
  ++number_;
  return true;
}

void ShapeReader::refuse(std::string_view why) const {
  throw UsageError(fmt::format("{}:{}: {}", visible(list_.source.file), number_, why));
}

std::int64_t ShapeReader::whole(std::string_view word, std::string_view what, std::int64_t low) const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < low || value > max_extent)
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
  found->calls += calls * each_;
}

void ShapeReader::add(ListedShape shape) {
  shape.calls *= each_;
  if (!(shape.calls > 0.0 && shape.calls <= max_calls))
    refuse(fmt::format("{} calls, expected a number above 0 and up to {}", shape.calls, max_calls));
  shape.line = number_;
  const auto [place, is_new] =
      places_.try_emplace({shape.suite, shape.workload, shape.dims, shape.recipe}, list_.shapes.size());
  if (!is_new) {
    list_.shapes[place->second].calls += shape.calls;
    return;
  }
  if (list_.shapes.size() == max_listed_shapes)
    refuse(fmt::format("more than {} shapes, the limit of a run; split the list", max_listed_shapes));
  list_.shapes.push_back(std::move(shape));
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
