#include "reference/ops/loss_scaling.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {

Unscale unscale(Program& program, const Math& math, std::string label, ValueId scale,
                std::span<const ValueId> gradients) {
  if (gradients.empty()) throw ProgramError("unscale: no gradients given; expected at least one");
  expect_float_tensor(program, unscale_kind, scale, {1});
  OpCall call{unscale_kind, {}, math, {scale}, {}, std::move(label)};
  Unscale result;
  result.found_inf =
      reserve_output(program, scale, call.label + ".found_inf", program.spec(scale).dtype, Shape{1}, Role::scalar);
  call.outputs.push_back(result.found_inf);
  for (const ValueId gradient : gradients) {
    const TensorSpec spec = program.spec(gradient);
    expect_float(unscale_kind, spec);
    const DType wide = statistic_type(spec.dtype);
    result.gradients.push_back(spec.dtype == wide ? update_output(program, gradient)
                                                  : reserve_output(program, gradient, spec.name + ".unscaled", wide,
                                                                   spec.shape, Role::gradient));
    call.inputs.push_back(gradient);
    call.outputs.push_back(result.gradients.back());
  }
  program.append(std::move(call));
  return result;
}

void update_scale(Program& program, const UpdateScale& attributes, std::string label, ValueId scale, ValueId tracker,
                  ValueId found_inf) {
  for (const ValueId scalar : {scale, found_inf}) expect_float_tensor(program, update_scale_kind, scalar, {1});
  expect_tensor(program, update_scale_kind, tracker, {1}, DType::i32);
  if (!(attributes.growth > 0.0 && attributes.backoff > 0.0 && attributes.interval > 0)) {
    throw ProgramError("update_scale: growth, backoff and interval are to be positive");
  }
  const ValueId new_scale = update_output(program, scale);
  program.append({update_scale_kind,
                  attributes,
                  Math{},
                  {scale, tracker, found_inf},
                  {new_scale, update_output(program, tracker)},
                  std::move(label)});
}

Builders loss_scaling_builders() {
  return {{unscale_kind, in_turn<unscale>}, {update_scale_kind, in_turn<update_scale>}};
}

}  // namespace gpubench
