// The op set: every op's definition, found by kind; defaults that definitions share; costs of whole programs.
#include "reference/ops/definition.h"

#include <algorithm>
#include <array>
#include <string>

namespace gpubench {
namespace {

std::vector<const OpDefinition*> in_alphabetical_order() {
  constexpr std::array<Definitions*, 16> textbooks{attention_definitions,
                                                   attention_backward_definitions,
                                                   bias_gradient_definitions,
                                                   collective_move_definitions,
                                                   collective_reduction_definitions,
                                                   conv2d_definitions,
                                                   cross_entropy_definitions,
                                                   embedding_definitions,
                                                   gemm_definitions,
                                                   move_definitions,
                                                   norm_definitions,
                                                   norm_backward_definitions,
                                                   optimizer_definitions,
                                                   pointwise_definitions,
                                                   quantize_definitions,
                                                   rotary_definitions};
  std::vector<const OpDefinition*> all;
  for (Definitions* textbook : textbooks) {
    const auto some = textbook();
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end(),
            [](const OpDefinition* a, const OpDefinition* b) { return a->kind().name < b->kind().name; });
  return all;
}

}  // namespace

std::span<const OpDefinition* const> definitions() {
  static const std::vector<const OpDefinition*> all = in_alphabetical_order();
  return all;
}

const OpDefinition& definition(OpKind kind) {
  const auto all = definitions();
  const auto found =
      std::lower_bound(all.begin(), all.end(), kind.name,
                       [](const OpDefinition* op, std::string_view name) { return op->kind().name < name; });
  if (found != all.end() && (*found)->kind() == kind) return **found;
  std::string known;
  for (const OpDefinition* op : all) {
    if (!known.empty()) known += ", ";
    known += op->kind().name;
  }
  throw ProgramError("no op '" + std::string(kind.name) + "'; expected one of: " + known);
}

void OpDefinition::derivative(Program&, const OpCall& call, GradientTape&) const {
  throw ProgramError(std::string(call.kind.name) + " has no derivative (op '" + call.label + "')");
}

double bytes_moved(std::span<const TensorSpec> tensors) {
  double bytes = 0.0;
  for (const TensorSpec& tensor : tensors) bytes += bytes_moved(tensor);
  return bytes;
}

Cost cost_of(const Program& program, const OpCall& call) {
  return definition(call.kind).cost({call, specs_of(program, call.inputs), specs_of(program, call.outputs)});
}

Cost cost_of(const Program& program) {
  Cost total;
  for (const OpCall& call : program.ops()) {
    if (call.phase != Phase::timed) continue;
    const Cost cost = cost_of(program, call);
    total.flop += cost.flop;
    total.bytes += cost.bytes;
    total.message_bytes += cost.message_bytes;
  }
  return total;
}

}  // namespace gpubench
