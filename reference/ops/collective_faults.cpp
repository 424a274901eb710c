#include "reference/ops/collective_faults.h"

#include <algorithm>
#include <cmath>

namespace gpubench {
namespace {

constexpr double nearly_all = 0.9;

bool predicts(const FaultHypothesis& hypothesis, std::span<const Mismatch> wrong, DType type) {
  std::int64_t right = 0;
  for (const Mismatch& one : wrong) {
    const double predicted = round_to(type, hypothesis.predict(one.linear));
    const double slack = 2.0 * unit_roundoff(type) * std::fabs(predicted);  // of sums taken in another order
    if (std::fabs(one.got - predicted) <= slack) ++right;
  }
  return static_cast<double>(right) >= nearly_all * static_cast<double>(wrong.size());
}

std::string part_text(std::span<const Mismatch> wrong, std::int64_t elements, int chunks) {
  const auto by_place = [](const Mismatch& a, const Mismatch& b) { return a.linear < b.linear; };
  const auto [first, last] = std::minmax_element(wrong.begin(), wrong.end(), by_place);
  const std::string range = first->linear == last->linear
                                ? "element " + std::to_string(first->linear)
                                : "elements " + std::to_string(first->linear) + " to " + std::to_string(last->linear);
  const auto chunk_of = [&](std::int64_t linear) { return linear * chunks / elements; };
  if (chunks < 2 || elements < chunks || chunk_of(first->linear) != chunk_of(last->linear)) return range;
  return "chunk " + std::to_string(chunk_of(first->linear)) + " of " + std::to_string(chunks) + " (" + range + ")";
}

}  // namespace

std::string name_fault(std::span<const FaultHypothesis> hypotheses, std::span<const Mismatch> wrong, DType type,
                       std::int64_t elements, int chunks) {
  if (wrong.empty()) return {};
  const std::string part = part_text(wrong, elements, chunks);
  for (const FaultHypothesis& hypothesis : hypotheses) {
    if (predicts(hypothesis, wrong, type)) return hypothesis.words + ", in " + part;
  }
  return "in " + part;
}

}  // namespace gpubench
