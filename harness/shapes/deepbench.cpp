// DeepBench's lists: its C++ headers (gemm_problems.h, conv_problems.h), and the same columns as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/shapes/shape_reader.h"

namespace gpubench {
namespace {

constexpr std::string_view row_word = "make_tuple(";

// Columns of gemm_problems.h, with column-major matrices as in BLAS, and of conv_problems.h.
constexpr std::array<std::string_view, 5> product_columns{"m", "n", "k", "a_t", "b_t"};
constexpr std::array<std::string_view, 11> convolution_columns{
    "w", "h", "c", "n", "k", "filter_w", "filter_h", "pad_w", "pad_h", "stride_w", "stride_h"};

bool is_transposed(const ShapeReader& reader, std::string_view word) {
  for (const std::string_view yes : {"true", "1", "t", "T"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"false", "0", "n", "N"}) {
    if (word == no) return false;
  }
  reader.refuse(fmt::format("'{}' does not say whether a matrix is transposed; expected true or false", shown(word)));
}

// A row of either kind, in column order. DeepBench times a convolution in its three directions.
void add_row(ShapeReader& reader, const std::vector<std::string_view>& row, const ListedTypes& types, double calls) {
  const auto at = [&](std::size_t column, std::string_view name, std::int64_t low = 1) {
    return reader.whole(row[column], name, low);
  };
  if (row.size() == product_columns.size()) {
    BlasProduct product;
    product.m = at(0, "m"), product.n = at(1, "n"), product.k = at(2, "k");
    product.transpose_a = is_transposed(reader, row[3]);
    product.transpose_b = is_transposed(reader, row[4]);
    return reader.add(product, types, calls);
  }
  if (row.size() != convolution_columns.size())
    reader.refuse(fmt::format("a row of {} numbers, expected {} (m, n, k, a_t, b_t) or {} of a convolution", row.size(),
                              product_columns.size(), convolution_columns.size()));
  ListedConvolution c;
  c.w = at(0, "w"), c.h = at(1, "h"), c.c = at(2, "c"), c.n = at(3, "n"), c.k = at(4, "k");
  c.s = at(5, "filter_w"), c.r = at(6, "filter_h");
  c.pad_w = at(7, "pad_w", 0), c.pad_h = at(8, "pad_h", 0);
  c.stride_w = at(9, "stride_w"), c.stride_h = at(10, "stride_h");
  for (const auto direction : {ConvDirection::forward, ConvDirection::backward_data, ConvDirection::backward_filter}) {
    c.direction = direction;
    reader.add(c, types, calls);
  }
}

// The names of a CSV's columns; empty if the line is not a header.
std::vector<std::string_view> header_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (const std::string_view word : split(line, ',')) columns.push_back(trimmed(word));
  const auto has_all = [&](const auto& wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view name) {
      return std::find(columns.begin(), columns.end(), name) != columns.end();
    });
  };
  if (!has_all(product_columns) && !has_all(convolution_columns)) columns.clear();
  return columns;
}

void read_csv_row(ShapeReader& reader, const std::vector<std::string_view>& header) {
  const std::vector<std::string_view> cells = split(reader.line(), ',');
  if (cells.size() != header.size())
    reader.refuse(fmt::format("{} cells, expected {} as in the header", cells.size(), header.size()));
  const auto cell = [&](std::string_view name) {
    const auto found = std::find(header.begin(), header.end(), name);
    return found == header.end() ? std::string_view()
                                 : trimmed(cells[static_cast<std::size_t>(found - header.begin())]);
  };
  std::vector<std::string_view> row;
  if (std::find(header.begin(), header.end(), "a_t") != header.end()) {
    for (const std::string_view name : product_columns) row.push_back(cell(name));
  } else {
    for (const std::string_view name : convolution_columns) row.push_back(cell(name));
  }
  const std::string type(cell("precision"));
  const std::string_view calls = cell("calls");
  add_row(reader, row, {type, type, type}, calls.empty() ? 1.0 : static_cast<double>(reader.whole(calls, "calls")));
}

// Rows of a C++ list; names inference lists as such.
void read_tuples(ShapeReader& reader, bool training) {
  std::string_view rest = reader.line();
  rest = rest.substr(0, rest.find("//"));
  for (std::size_t at = rest.find(row_word); at != rest.npos; at = rest.find(row_word)) {
    rest.remove_prefix(at + row_word.size());
    const std::size_t end = rest.find(')');
    if (end == rest.npos) reader.refuse("a row has no end; expected make_tuple(...) on one line");
    if (!training) {
      reader.leave_out("a row of an inference list");
      continue;
    }
    std::vector<std::string_view> row;
    for (const std::string_view word : split(rest.substr(0, end), ',')) row.push_back(trimmed(word));
    add_row(reader, row, {}, 1.0);
  }
}

bool is_deepbench(std::string_view line) { return line.find(row_word) != line.npos || !header_of(line).empty(); }

void read_deepbench(ShapeReader& reader) {
  std::vector<std::string_view> header;
  bool training = true;
  while (reader.next()) {
    const std::string_view line = reader.line();
    if (!header.empty()) {
      if (!line.empty() && !line.starts_with('#')) read_csv_row(reader, header);
    } else if (header = header_of(line); header.empty()) {
      if (line.find("_set") != line.npos) training = line.find("inference") == line.npos;
      read_tuples(reader, training);
    }
  }
}

}  // namespace

const ShapeFormat deepbench_format{"DeepBench", is_deepbench, read_deepbench};

}  // namespace gpubench
