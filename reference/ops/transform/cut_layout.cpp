#include "reference/ops/transform/cut_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace gpubench {
namespace {

std::int64_t extent(const TensorSpec& spec, int axis) { return spec.shape[axis]; }
std::int64_t stride(const TensorSpec& spec, int axis) { return spec.layout.strides[static_cast<std::size_t>(axis)]; }

/// The place of a view's axis in the whole.
struct AxisPlace {
  int axis = 0;               ///< axis of the whole; if several are covered, the innermost
  int outermost = 0;          ///< the outermost covered axis; `axis` if the view's axis lies within it
  std::int64_t multiple = 1;  ///< stride of the view's axis, in elements along `axis`
};

/// None if the view's axis fits no axes of the whole.
std::optional<AxisPlace> place_of(const TensorSpec& whole, const TensorSpec& view, int axis) {
  const std::int64_t step = stride(view, axis);
  const std::int64_t span = step * extent(view, axis);
  for (int at = 0; at < whole.shape.rank(); ++at) {
    const std::int64_t outer = stride(whole, at) * extent(whole, at);
    if (stride(whole, at) > step || (step >= outer && at > 0)) continue;
    if (step % stride(whole, at) != 0) return std::nullopt;
    const std::int64_t multiple = step / stride(whole, at);
    if (span <= outer) return AxisPlace{at, at, multiple};
    for (int out = at; out >= 0; --out) {
      if (stride(whole, out) * extent(whole, out) == span && multiple == 1) return AxisPlace{at, out, 1};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

/// Whether no other axis of the view lies within the same axis of the whole with a larger stride.
bool is_outermost_within(const TensorSpec& whole, const TensorSpec& view, int axis, const AxisPlace& place) {
  for (int other = 0; other < view.shape.rank(); ++other) {
    if (other == axis || extent(view, other) == 1) continue;
    const std::optional<AxisPlace> there = place_of(whole, view, other);
    if (there && there->axis == place.axis && stride(view, other) > stride(view, axis)) return false;
  }
  return true;
}

std::int64_t sum(const std::vector<std::int64_t>& sections) {
  return std::accumulate(sections.begin(), sections.end(), std::int64_t{0});
}

std::vector<std::int64_t> sections_of(const TensorSpec& spec, const Cut& cut) {
  return cut.sections.empty() ? std::vector{extent(spec, cut.axis)} : cut.sections;
}

Cut cut_in(int axis, std::vector<std::int64_t> sections) {
  if (sections.size() == 1) sections.clear();
  return {axis, std::move(sections)};
}

void resize(std::int64_t& extent, const Cut& cut, int parts) {
  extent = cut.of_experts ? extent * parts : extent / parts;
}

std::int64_t start_of(const TensorSpec& whole, std::int64_t first, int axis) {
  return first / stride(whole, axis) % extent(whole, axis);
}

/// Axes from slowest to fastest.
std::vector<int> order_of(const TensorSpec& spec) {
  std::vector<int> order(static_cast<std::size_t>(spec.shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&spec](int axis) { return stride(spec, axis); });
  return order;
}

}  // namespace

std::optional<CutRange> range_of(const TensorSpec& whole, const View& view, const Cut& cut) {
  const std::optional<AxisPlace> place = place_of(whole, view.spec, cut.axis);
  if (!place || !is_outermost_within(whole, view.spec, cut.axis, *place)) return std::nullopt;
  if (place->outermost != place->axis) {
    if (!cut.sections.empty()) return std::nullopt;
    return CutRange{place->outermost, 0, {extent(whole, place->outermost)}};
  }
  std::vector<std::int64_t> sections = sections_of(view.spec, cut);
  for (std::int64_t& section : sections) section *= place->multiple;
  return CutRange{place->axis, start_of(whole, view.first, place->axis), std::move(sections)};
}

std::optional<Cut> join(const TensorSpec& whole, std::vector<CutRange> ranges) {
  std::ranges::sort(ranges, {}, &CutRange::start);
  std::vector<std::int64_t> sections;
  std::int64_t next = 0;
  for (const CutRange& range : ranges) {
    if (range.axis != ranges.front().axis || range.start > next) return std::nullopt;
    if (range.start < next) continue;
    sections.insert(sections.end(), range.sections.begin(), range.sections.end());
    next += sum(range.sections);
  }
  if (ranges.empty() || next != extent(whole, ranges.front().axis)) return std::nullopt;
  return cut_in(ranges.front().axis, std::move(sections));
}

std::optional<Cut> cut_of_view(const TensorSpec& whole, const Cut& cut, const View& view) {
  const std::vector<std::int64_t> sections = sections_of(whole, cut);
  for (int axis = 0; axis < view.spec.shape.rank(); ++axis) {
    const std::optional<AxisPlace> place = place_of(whole, view.spec, axis);
    if (!place || place->outermost != cut.axis || !is_outermost_within(whole, view.spec, axis, *place)) continue;
    if (cut.of_experts) return axis == 0 ? std::optional(cut) : std::nullopt;
    if (place->outermost != place->axis) return sections.size() == 1 ? std::optional(Cut{axis, {}}) : std::nullopt;
    const std::int64_t start = start_of(whole, view.first, cut.axis);
    const std::int64_t length = extent(view.spec, axis) * place->multiple;
    std::vector<std::int64_t> within;
    std::int64_t at = 0;
    for (const std::int64_t section : sections) {
      if (at >= start && at + section <= start + length && section % place->multiple == 0)
        within.push_back(section / place->multiple);
      at += section;
    }
    return sum(within) == extent(view.spec, axis) ? std::optional(cut_in(axis, std::move(within))) : std::nullopt;
  }
  return std::nullopt;
}

bool divides(const TensorSpec& spec, const Cut& cut, int parts) {
  return cut.of_experts ||
         std::ranges::all_of(sections_of(spec, cut), [parts](std::int64_t section) { return section % parts == 0; });
}

void shrink(TensorSpec& whole, const Cut& cut, int parts) {
  const std::vector<int> order = order_of(whole);
  std::vector<std::int64_t> extents(whole.shape.extents().begin(), whole.shape.extents().end());
  resize(extents[static_cast<std::size_t>(cut.axis)], cut, parts);
  whole.shape = Shape(std::move(extents));
  whole.layout = Layout::ordered(whole.shape, order);
}

std::int64_t shrink_view(const TensorSpec& whole, const Cut& cut, int parts, const Cut& of_view, std::int64_t first,
                         TensorSpec& view) {
  TensorSpec part = whole;
  shrink(part, cut, parts);
  std::vector<std::int64_t> strides;
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    const std::optional<AxisPlace> place = place_of(whole, view, axis);
    strides.push_back(place ? place->multiple * stride(part, place->axis) : stride(view, axis));
  }
  std::vector<std::int64_t> extents(view.shape.extents().begin(), view.shape.extents().end());
  resize(extents[static_cast<std::size_t>(of_view.axis)], of_view, parts);
  view.shape = Shape(std::move(extents));
  view.layout.strides = std::move(strides);
  std::int64_t there = 0;
  for (int axis = 0; axis < whole.shape.rank(); ++axis) {
    std::int64_t index = start_of(whole, first, axis);
    if (axis == cut.axis && !cut.of_experts) {
      std::int64_t before = 0;
      for (const std::int64_t section : sections_of(whole, cut)) {
        if (before + section > index) break;
        before += section;
      }
      index = before / parts + (index - before);
    }
    there += index * stride(part, axis);
  }
  return there;
}

}  // namespace gpubench
