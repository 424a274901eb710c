// Splits work over the threads of a rank, always in the same way, so that results do not depend on timing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpubench::cpu {

/// Part `index` of [0, total), cut into `parts` nearly equal pieces at multiples of `grain`.
struct Chunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
[[nodiscard]] inline Chunk chunk_of(std::int64_t total, std::int64_t grain, int parts, int index) {
  const std::int64_t grains = (total + grain - 1) / grain;
  const std::int64_t begin = grains * index / parts * grain;
  const std::int64_t end = grains * (index + 1) / parts * grain;
  return {std::min(begin, total), std::min(end, total)};
}

/// Number of pieces of parallel_chunks(): for kernels with one partial result per piece.
[[nodiscard]] inline int chunk_count(int threads, std::int64_t total, std::int64_t grain) {
  const std::int64_t grains = (total + grain - 1) / grain;
  return static_cast<int>(std::clamp<std::int64_t>(grains, 1, threads));
}

/// Calls work(begin, end) for nearly equal pieces of [0, total), one per thread, cut at multiples of `grain`: at least
/// 1, the minimum worth a thread. The pieces depend on the arguments only.
template <class Work>
void parallel_chunks(int threads, std::int64_t total, std::int64_t grain, const Work& work) {
  if (total <= 0) return;
  const int parts = chunk_count(threads, total, grain);
  if (parts == 1) {
    work(std::int64_t{0}, total);
    return;
  }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int index = 0; index < parts; ++index) {
    const Chunk chunk = chunk_of(total, grain, parts, index);
    if (chunk.begin < chunk.end) work(chunk.begin, chunk.end);
  }
}

/// Calls work(part, chunk) for each piece (one empty piece if total is 0): for kernels with one result per piece.
template <class Work>
void parallel_parts(int threads, std::int64_t total, std::int64_t grain, const Work& work) {
  const int parts = chunk_count(threads, total, grain);
  parallel_chunks(parts, parts, 1, [&](std::int64_t part, std::int64_t) {
    work(part, chunk_of(total, grain, parts, static_cast<int>(part)));
  });
}

// Many tensors as one range of elements, cut evenly over threads, for multi-tensor ops.

/// Position of each tensor in the range. Tensors start at multiples of `alignment` elements, so that cuts at such
/// multiples are at cache lines.
class TensorList {
 public:
  static constexpr std::int64_t alignment = 64;

  void add(std::int64_t elements) {
    elements_.push_back(elements);
    begins_.push_back(length_);
    length_ += (elements + alignment - 1) / alignment * alignment;
  }

  [[nodiscard]] std::int64_t length() const { return length_; }

  /// Calls visit(tensor index, first element, count) for the parts of tensors in [begin, end), in order.
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin);
    for (auto i = static_cast<std::size_t>(after - begins_.begin()) - 1; i < begins_.size() && begins_[i] < end; ++i) {
      const std::int64_t first = std::max<std::int64_t>(begin - begins_[i], 0);
      const std::int64_t last = std::min(end - begins_[i], elements_[i]);
      if (first < last) visit(i, first, last - first);
    }
  }

 private:
  std::vector<std::int64_t> elements_;
  std::vector<std::int64_t> begins_;
  std::int64_t length_ = 0;
};

}  // namespace gpubench::cpu
