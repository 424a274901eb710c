// A matrix operand as lines along what is summed over, for the textbook of matrix products.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/tensor.h"

namespace gpubench {

/// What the stored scale of a block stands for: an E8M0 number is kept as u8, of e4m3 the sign does not count.
[[nodiscard]] inline double block_scale(DType type, double stored) {
  if (type != DType::u8) return std::fabs(stored);
  return stored == 255.0 ? std::nan("") : std::ldexp(1.0, static_cast<int>(stored) - 127);
}

/// Rows of op(a), columns of op(b).
class Lines {
 public:
  /// `along_last`: whether a line is along the last axis; `keep`: how many lines to keep decoded; one suffices where
  /// lines are asked for in order. A line has `k` elements from `first` on. `scales`: of a matrix [lines, k], those of
  /// equal blocks of each line, by which it is multiplied (exactly: 4 significant bits by 4 at most), or null.
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

  /// Of matrix `batch`, where the tensor has three axes.
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

  // 32 MiB of fp64: what fits is decoded once, however many elements need it.
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
  std::vector<double> of_line_;  // scales
};

}  // namespace gpubench
