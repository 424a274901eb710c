#include "reference/ops/count_labels.h"

#include <algorithm>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {
namespace {

struct LabelCount {
  CountLabels attributes;
  std::int64_t rows = 0;
  const std::int32_t* labels = nullptr;
  float* y = nullptr;

  void operator()() const {
    const std::int64_t ignored = std::count(labels, labels + rows, attributes.ignore_index);
    *y = static_cast<float>(static_cast<double>(rows - ignored) / attributes.parts);
  }
};

}  // namespace

Plan plan_count_labels(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext&) {
  const Named<TensorSpec> operand(call, tensors);
  expect_type(call, operand, {"labels"}, DType::i32);
  expect_type(call, operand, {"y"}, DType::f32);
  expect_row_major(call, operand, {"labels"});
  LabelCount work;
  work.attributes = call.attributes.as<CountLabels>();
  work.rows = operand["labels"].shape.elements();
  return own_plan(call, work, {{"labels", to<&LabelCount::labels>}, {"y", to<&LabelCount::y>}});
}

}  // namespace gpubench::cpu
