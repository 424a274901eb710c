// Parts of ops, with their bounds, that several textbooks use.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/ops/definition.h"
#include "reference/ops/pointwise.h"

namespace gpubench {

/// gelu(x) and its error bound in arithmetic of unit roundoff `u`: six ulps of the result, three of the input, and the
/// cancellation of 1 + tanh. `tanh_error`: additional relative error of tanh.
[[nodiscard]] Expected gelu_value(GeluForm form, double x, double u, double tanh_error = 0.0);
[[nodiscard]] Expected gelu_slope(GeluForm form, double x, double u, double tanh_error = 0.0);

/// 2^-11 with Math::approximate_tanh, the PTX manual's largest relative error of tanh.approx.f32; else 0.
[[nodiscard]] double tanh_error_of(const Math& math);

/// These bounds in words. `x` names the argument; y is gelu of it.
[[nodiscard]] std::string gelu_value_text(GeluForm form, const std::string& x, const Math& math);
[[nodiscard]] std::string gelu_slope_text(GeluForm form, const std::string& x, const Math& math);

// A row's softmax with its bound.
//
// With D_i = m - x_i >= 0: the difference, and the product with log2(e) inside exp, cost 2 u D_i; exp itself three ulps
// (OpenCL's table), 6 u. The sum passes these errors of all terms on to y_i, weighted by y_j. Adding n positive terms
// costs 2 u sqrt(n), and a quotient, or a product with a rounded reciprocal, 2 u:
//     T_i = y_i u (2 D_i + 6 + sum y_j (2 D_j + 6) + 2 sqrt(n) + 2) + t
// where t, the smallest normal number, covers an exp flushed to zero.

/// u (2 D + 6), a term's relative error.
[[nodiscard]] inline double exp_error(double distance, double u) { return u * (2.0 * distance + 6.0); }

/// y[i] for each x[i]. `tiny`: t above.
void judge_softmax(std::span<const double> x, double u, double tiny, std::span<Expected> y);

[[nodiscard]] std::string softmax_rule(std::int64_t n, const Math& math);

// Batch norm whose statistics are sums taken where x was computed, for fused ops.

/// Judges an output of `norm`, a batch_norm_forward or batch_norm_relu_forward. Its statistics are made of sums of x's
/// elements and squares, each taken before or after the element was rounded to `stored`.
void judge_batch_norm_of_sums(const Operands& norm, DType stored, int output, std::span<const std::int64_t> wanted,
                              std::span<Expected> judged);
[[nodiscard]] std::string batch_norm_of_sums_bound(const CallSpecs& norm, int output);

// For the test that compares dropout's random numbers with published ones.

/// Philox4x32-10 (Salmon et al., SC 2011).
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                         std::array<std::uint32_t, 2> key);

/// The value of a block's stored scale: u8 holds an E8M0 number; the sign of e4m3 is ignored.
[[nodiscard]] inline double block_scale(DType type, double stored) {
  if (type != DType::u8) return std::fabs(stored);
  return stored == 255.0 ? std::nan("") : std::ldexp(1.0, static_cast<int>(stored) - 127);
}

/// The lines of a matrix operand along the summed axis: rows of op(a), columns of op(b).
class Lines {
 public:
  /// `along_last`: a line runs along the last axis. A line has `k` elements from `first`. `keep`: decoded lines to
  /// cache; 1 suffices for access in order. `scales`: scales of equal blocks of each line of a matrix [lines, k], or
  /// null; the products are exact (4 significant bits by 4 at most).
  Lines(const TensorView& view, bool along_last, std::int64_t k, std::int64_t keep, std::int64_t first = 0,
        const TensorView* scales = nullptr)
      : view_(view),
        scales_(scales),
        along_last_(along_last),
        k_(static_cast<std::size_t>(k)),
        first_(first),
        keep_(keep > 1 && keep * k <= largest_kept) {
    lines_.resize(keep_ ? static_cast<std::size_t>(keep) : 1);
  }

  /// A line of matrix `batch`, if the tensor has three axes.
  std::span<const double> line(std::int64_t batch, std::int64_t index) {
    if (batch != batch_) {
      for (std::vector<double>& line : lines_) line.clear();
      batch_ = batch;
      current_ = -1;
    }
    std::vector<double>& line = lines_[keep_ ? static_cast<std::size_t>(index) : 0];
    if (line.size() == k_ && (keep_ || index == current_)) return line;
    line.resize(k_);
    current_ = index;
    const std::int64_t row = along_last_ ? index : first_;
    const std::int64_t column = along_last_ ? first_ : index;
    if (view_.shape().rank() == 3) {
      view_.read({batch, row, column}, along_last_ ? 2 : 1, line);
    } else {
      view_.read({row, column}, along_last_ ? 1 : 0, line);
    }
    if (scales_ != nullptr) scale_blocks(index, line);
    return line;
  }

 private:
  void scale_blocks(std::int64_t index, std::vector<double>& line) {
    of_line_.resize(static_cast<std::size_t>(scales_->shape()[1]));
    if (of_line_.empty()) return;
    scales_->read({index, 0}, 1, of_line_);
    const std::size_t block = line.size() / of_line_.size();
    for (double& stored : of_line_) stored = block_scale(scales_->dtype(), stored);
    for (std::size_t i = 0; i < line.size(); ++i) line[i] *= of_line_[i / block];
  }

  // 32 MiB of fp64 lines are kept, so that each is decoded once.
  static constexpr std::int64_t largest_kept = std::int64_t{1} << 22;

  const TensorView& view_;
  const TensorView* scales_;
  bool along_last_;
  std::size_t k_;
  std::int64_t first_;
  bool keep_;
  std::int64_t batch_ = -1;
  std::int64_t current_ = -1;
  std::vector<std::vector<double>> lines_;
  std::vector<double> of_line_;
};

template <class Judge>
void judge_rows(std::int64_t columns, std::span<const std::int64_t> wanted, std::span<Expected> judged, Judge judge) {
  while (!wanted.empty()) {
    const std::int64_t row = wanted.front() / columns;
    const auto end = std::lower_bound(wanted.begin(), wanted.end(), (row + 1) * columns);
    const auto count = static_cast<std::size_t>(end - wanted.begin());
    judge(row, wanted.first(count), judged.first(count));
    wanted = wanted.subspan(count);
    judged = judged.subspan(count);
  }
}

}  // namespace gpubench
