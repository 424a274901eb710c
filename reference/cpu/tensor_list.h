// Many tensors as one line of elements, cut evenly over threads: which multi-tensor ops iterate over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpubench::cpu {

/// Where each tensor is on the line. Each takes whole multiples of `alignment` elements, so that every cut at such a
/// multiple is at a cache line of its tensor.
class TensorList {
 public:
  static constexpr std::int64_t alignment = 64;

  void add(std::int64_t elements) {
    elements_.push_back(elements);
    begins_.push_back(length_);
    length_ += (elements + alignment - 1) / alignment * alignment;
  }

  /// Of the whole line.
  [[nodiscard]] std::int64_t length() const { return length_; }
  [[nodiscard]] std::int64_t tensors() const { return static_cast<std::int64_t>(elements_.size()); }

  /// Calls visit(tensor index, first element, count) for what [begin, end) of the line covers, in order.
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
