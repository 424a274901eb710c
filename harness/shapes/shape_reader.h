// Shared by the readers of all formats: position in the text, and conversion to listed shapes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "harness/core/error.h"
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

/// Of an extent above 2^30.
class TooLarge : public UsageError {
  using UsageError::UsageError;
};

class ShapeReader {
 public:
  /// `folder`: of other files that the list may name (enter()); empty: it may name none.
  ShapeReader(std::string_view text, const std::string& file, std::string folder = {});

  /// The next line of the current file, without surrounding blanks; false at its end.
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }

  [[noreturn]] void refuse(std::string_view why) const;

  /// Continues with the first line of file `name` in the folder. False, after a note, if the list may not name it: a
  /// path, a file that is being read or cannot be, or one file too many. leave() returns to the line that named it.
  [[nodiscard]] bool enter(std::string_view name);
  void leave() { files_.pop_back(); }

  /// A whole number from `low` to 2^30; else refuse()s, with `what` as its name. Throws TooLarge above 2^30.
  [[nodiscard]] std::int64_t whole(std::string_view word, std::string_view what, std::int64_t low = 1) const;

  /// From now on each call that is added or left out counts as `calls`.
  void count_each_as(std::int64_t calls) { each_ = static_cast<double>(calls); }
  void add(const ListedProduct& product, const ListedTypes& types, double calls = 1.0);
  void add(const BlasProduct& product, const ListedTypes& types, double calls = 1.0);
  void add(const ListedConvolution& convolution, const ListedTypes& types, double calls = 1.0);
  void add(ListedShape shape);
  void leave_out(std::string_view reason, double calls = 1.0) { note(reason, calls * each_, false); }
  /// Parts of the work that cases lack: "the bias". Counts the calls of all shapes added until the next call.
  void take_without(std::vector<std::string> parts) { missing_ = std::move(parts); }

  [[nodiscard]] ShapeList take(std::string_view format);

 private:
  struct File {
    std::string name;
    std::string_view text;  // not yet read
    std::int64_t number = 0;
  };
  void note(std::string_view reason, double calls, bool taken);

  std::string folder_;
  std::vector<File> files_;  // the list, and files entered from it
  std::size_t entered_ = 0;
  std::map<std::string, std::string> texts_;  // of entered files; lines refer to them
  std::string_view line_;
  double each_ = 1.0;
  std::vector<std::string> missing_;
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
