// Shared by the readers of all formats: position in the text, and conversion to listed shapes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "harness/core/text/text_table.h"
#include "harness/shapes/shape_list.h"

namespace gpubench {

/// Row-major matrices: c [m, n] = op(a) op(b), sums of k products; `batch` of them, contiguous.
struct ListedProduct {
  std::int64_t batch = 1;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

/// Column-major matrices as in BLAS: c^T = op(b)^T op(a)^T is row-major. `ld`: leading dimensions of a, b, c; 0: dense.
struct BlasProduct {
  std::int64_t batch = 1;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
};

enum class ConvDirection { forward, backward_data, backward_filter };

/// A convolution of images; dilation 1 is none. `out_h`, `out_w`: 0 if not in the list.
struct ListedConvolution {
  ConvDirection direction = ConvDirection::forward;
  std::int64_t n = 1, c = 0, h = 0, w = 0, k = 0, r = 0, s = 0;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;
  std::int64_t out_h = 0, out_w = 0;
};

/// Types of a product or a convolution, as in Recipe: "f32", "bf16"; `tf32`: how f32 is multiplied. Empty if not in the
/// list.
struct ListedTypes {
  std::string a, b, c;
  bool tf32 = false;
};

class ShapeReader {
 public:
  ShapeReader(std::string_view text, const std::string& file) : text_(text) { list_.source.file = file; }

  /// The next line, without surrounding blanks; false at the end.
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }

  [[noreturn]] void refuse(std::string_view why) const;

  /// A whole number from `low` to 2^30; else refuse()s, with `what` as its name.
  [[nodiscard]] std::int64_t whole(std::string_view word, std::string_view what, std::int64_t low = 1) const;

  /// From now on each call that is added, left out or noted counts as `calls`.
  void count_each_as(std::int64_t calls) { each_ = static_cast<double>(calls); }
  void add(const ListedProduct& product, const ListedTypes& types, double calls = 1.0);
  void add(const BlasProduct& product, const ListedTypes& types, double calls = 1.0);
  void add(const ListedConvolution& convolution, const ListedTypes& types, double calls = 1.0);
  void add(ListedShape shape);
  void leave_out(std::string_view reason, double calls = 1.0) { note(reason, calls, false); }
  void take_without(std::string_view what, double calls = 1.0) { note(what, calls, true); }

  [[nodiscard]] ShapeList take(std::string_view format);

 private:
  void note(std::string_view reason, double calls, bool taken);

  std::string_view text_;
  std::string_view line_;
  std::int64_t number_ = 0;
  double each_ = 1.0;
  ShapeList list_;
  std::map<std::tuple<std::string, std::string, Dims, std::string>, std::size_t> places_;
};

[[nodiscard]] std::string_view trimmed(std::string_view text);
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);
/// A word of the list for a message: printable, at most a line long.
[[nodiscard]] std::string shown(std::string_view word);

// The formats. Each is recognized by one line, and reads the text from the beginning.

struct ShapeFormat {
  std::string_view name;
  bool (*recognizes)(std::string_view line);
  void (*read)(ShapeReader& reader);
};
extern const ShapeFormat onednn_verbose_format, benchdnn_format;          // onednn.cpp
extern const ShapeFormat cublas_format, cublaslt_format, rocblas_format;  // blas_logs.cpp
extern const ShapeFormat deepbench_format;                                // deepbench.cpp

}  // namespace gpubench
