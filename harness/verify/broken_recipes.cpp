#include "harness/verify/learning.h"

#include <algorithm>

#include "reference/ops/cross_entropy.h"
#include "reference/ops/optimizer.h"

namespace gpubench {
namespace {

bool has(const Program& program, const OpKind& kind) {
  return std::ranges::any_of(program.ops(), [&](const OpCall& call) { return call.kind == kind; });
}

int first_of(const Program& program, const OpKind& kind) {
  const auto ops = program.ops();
  const auto found = std::ranges::find_if(ops, [&](const OpCall& call) { return call.kind == kind; });
  return static_cast<int>(found - ops.begin());
}

/// Applies `change` to each element and rounds it to the value's type.
void change_each(TextbookMachine& machine, ValueId id, const std::function<double(std::int64_t, double)>& change) {
  HostTensor left(machine.view(id));
  for (std::int64_t e = 0; e < left.elements(); ++e) left.set(e, change(e, left.get(e)));
  machine.give(id, left.view());
}

void multiply(TextbookMachine& machine, ValueId id, double factor) {
  change_each(machine, id, [factor](std::int64_t, double value) { return value * factor; });
}

bool scales_loss(const Program& program) { return has(program, unscale_kind); }
bool clips_scaled_gradients(const Program& program) { return scales_loss(program) && has(program, clip_kind); }

/// Gradients of a mean over few tokens are far from underflow. Without scaling they are divided to the size of a batch
/// of 2^19 tokens, that of GPT-3 small (Brown et al., arXiv 2005.14165, table 2.1).
constexpr double tokens_of_a_real_batch = 524288.0;

void without_scale(const Program& program, SourceValues& sources) {
  const auto scale = sources.find(program.op(first_of(program, unscale_kind)).input("scale"));
  if (scale == sources.end()) return;
  const OpCall& loss = program.op(first_of(program, cross_entropy_backward_kind));
  scale->second.set(0, static_cast<double>(program.spec(loss.output("dlogits")).shape[0]) / tokens_of_a_real_batch);
}

// Gradients that are still scaled, and the scale, differ by definition.
bool is_unscaled(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  const OpCall& producer = program.op(*value.producer);
  if (producer.kind == update_scale_kind) return false;
  return *value.producer >= first_of(program, unscale_kind) || declares(producer.kind.outputs, "loss");
}

double scale_of(const Program& program, TextbookMachine& machine) {
  return machine.view(program.op(first_of(program, unscale_kind)).input("scale"))[0];
}

void scale_back(const Program& program, int op, TextbookMachine& machine) {
  const OpCall& call = program.op(op);
  if (call.kind != unscale_kind) return;
  for (const ValueId gradient : call.outputs) {
    if (gradient != call.output("found_inf")) multiply(machine, gradient, scale_of(program, machine));
  }
}

void norm_of_scaled(const Program& program, int op, TextbookMachine& machine) {
  if (program.op(op).kind == gradient_norm_kind)
    multiply(machine, program.op(op).output("norm"), scale_of(program, machine));
}

bool has_class_loss(const Program& program) { return has(program, cross_entropy_backward_kind); }

void not_averaged(const Program& program, int op, TextbookMachine& machine) {
  const OpCall& call = program.op(op);
  if (call.kind != cross_entropy_backward_kind) return;
  const ValueId dlogits = call.output("dlogits");
  multiply(machine, dlogits, static_cast<double>(program.spec(dlogits).shape[0]));
}

void without_last_row(const Program& program, int op, TextbookMachine& machine) {
  const OpCall& call = program.op(op);
  if (call.kind != cross_entropy_backward_kind) return;
  const ValueId dlogits = call.output("dlogits");
  const Shape& shape = program.spec(dlogits).shape;
  const std::int64_t first = (shape[0] - 1) * shape[1];
  change_each(machine, dlogits, [first](std::int64_t e, double value) { return e < first ? value : 0.0; });
}

bool has_adamw(const Program& program) { return has(program, adamw_kind); }
/// Not SGD: what bf16 loses of its larger steps may be within the rounding of the gradients.
bool keeps_adamw_masters(const Program& program) {
  return std::ranges::any_of(program.ops(),
                             [](const OpCall& call) { return call.kind == adamw_kind && call.attributes.has("copy"); });
}

void masters_in_bf16(const Program& program, int op, TextbookMachine& machine) {
  const OpCall& call = program.op(op);
  if (call.kind != adamw_kind || !call.attributes.has("copy")) return;
  const std::vector<OperandName> names = operand_names(call.kind.outputs, call.attributes, call.outputs.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name == "w'")
      change_each(machine, call.outputs[i], [](std::int64_t, double value) { return round_to(DType::bf16, value); });
  }
}

void longer_second_moment(OpCall& call) {
  if (call.kind == adamw_kind) call.attributes.set("beta2", 0.99);
}

void coupled_decay(OpCall& call) {
  if (call.kind == adamw_kind) call.attributes.set("l2", true);
}

void one_step_on(const Program& program, SourceValues& sources) {
  for (const OpCall& call : program.ops()) {
    if (call.kind != adamw_kind) continue;
    const auto number = sources.find(call.input("step"));
    if (number != sources.end()) number->second.set(0, number->second.get(0) + 1.0);
    return;  // all optimizers share it
  }
}

const std::vector<BrokenRecipe>& all_broken() {
  static const std::vector<BrokenRecipe> all{
      {.name = "no loss scaling",
       .what = "gradients of a batch of 2^19 tokens underflow",
       .recipe = "f16",
       .seen_in = {Role::gradient},
       .applies = scales_loss,
       .give = without_scale,
       .compares = is_unscaled},
      {.name = "loss scale not removed",
       .what = "the optimizer reads scaled gradients",
       .recipe = "f16",
       .seen_in = {Role::gradient, Role::scalar},
       .applies = scales_loss,
       .after = scale_back},
      {.name = "clip before unscale",
       .what = "the limit is compared with the norm of scaled gradients",
       .recipe = "f16",
       .seen_in = {Role::gradient},
       .applies = clips_scaled_gradients,
       .after = norm_of_scaled},
      {.name = "bf16 master weights",
       .what = "small updates are lost",
       .recipe = "bf16",
       .seen_in = {Role::parameter},
       .applies = keeps_adamw_masters,
       .after = masters_in_bf16},
      {.name = "gradient not averaged",
       .what = "summed over the batch",
       .recipe = "bf16",
       .seen_in = {Role::gradient, Role::scalar},
       .applies = has_class_loss,
       .after = not_averaged},
      {.name = "a row left out",
       .what = "the last row of the batch has no gradient",
       .recipe = "bf16",
       .seen_in = {Role::gradient},
       .applies = has_class_loss,
       .after = without_last_row},
      {.name = "beta2 0.99 for 0.95",
       .what = "the second moment decays slower",
       .recipe = "f32",
       .seen_in = {Role::state},
       .applies = has_adamw,
       .edit = longer_second_moment},
      {.name = "bias correction off by one",
       .what = "that of the next step",
       .recipe = "f32",
       .seen_in = {Role::parameter},
       .applies = has_adamw,
       .give = one_step_on},
      {.name = "weight decay in the gradient",
       .what = "Adam with L2 for AdamW",
       .recipe = "f32",
       .seen_in = {Role::state},
       .applies = has_adamw,
       .edit = coupled_decay},
  };
  return all;
}

Program edited(const Program& program, const BrokenRecipe& broken) {
  Program copy;
  (void)copy_values(program, copy, [](TensorSpec&) {});
  for (OpCall call : program.ops()) {
    if (broken.edit != nullptr) broken.edit(call);
    copy.begin(call.phase);
    copy.append(std::move(call));
  }
  return copy;
}

}  // namespace

std::span<const BrokenRecipe> broken_recipes() { return all_broken(); }

BrokenTrainee::BrokenTrainee(const Program& program, const BrokenRecipe& broken, int number)
    : TextbookTrainee(edited(program, broken), number), broken_(broken) {}

void BrokenTrainee::go_on(const SourceValues& data) {
  SourceValues given = data;
  if (broken_.give != nullptr) broken_.give(program(), given);
  TextbookTrainee::go_on(given);
}

void BrokenTrainee::after(int op) {
  if (broken_.after != nullptr) broken_.after(program(), op, machine());
}

bool must_show(const BrokenRecipe& broken, const EndToEndResult& rejected) {
  return std::ranges::find(broken.seen_in, rejected.role) != broken.seen_in.end();
}

}  // namespace gpubench
