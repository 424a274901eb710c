// Tensors that are cut, and the views into them: where the part of a packed tensor is once its whole is cut (q of a
// rank's qkv), and how the whole is cut once its parts are.
//
// A view is given by its spec and by the place of its first element in the row-major tensor that spans its storage, the
// whole. Each axis of a view is either within one axis of the whole (heads and their elements are both within columns)
// or covers several of them (rows of sequences times tokens).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/ops/transform/sharding.h"

namespace gpubench {

struct View {
  const TensorSpec& spec;
  std::int64_t first = 0;  ///< of its elements, in the whole
};

/// The elements [start, start + sum of sections) along an axis of the whole, cut section by section.
struct CutRange {
  int axis = 0;
  std::int64_t start = 0;
  std::vector<std::int64_t> sections;
};

/// What a cut view means for the whole. None where that is no cut of one axis.
[[nodiscard]] std::optional<CutRange> range_of(const TensorSpec& whole, const View& view, const Cut& cut);
/// The cut whose ranges these are. None unless they are along one axis and make up all of it, each place once.
[[nodiscard]] std::optional<Cut> join(const TensorSpec& whole, std::vector<CutRange> ranges);
/// How a view is cut where its whole is. None where that is no cut of one axis.
[[nodiscard]] std::optional<Cut> cut_of_view(const TensorSpec& whole, const Cut& cut, const View& view);

/// Whether each section of the axis has as many elements for each of `parts` ranks.
[[nodiscard]] bool divides(const TensorSpec& spec, const Cut& cut, int parts);
/// What one rank has of it, dense: its shape and, with its axes in the same order, its layout.
void shrink(TensorSpec& whole, const Cut& cut, int parts);
/// The view of one rank's part of the whole: `view` with its new shape and strides. Returns its first element there.
/// `of_view`: cut_of_view().
std::int64_t shrink_view(const TensorSpec& whole, const Cut& cut, int parts, const Cut& of_view, std::int64_t first,
                         TensorSpec& view);

}  // namespace gpubench
