// The op set: every op's definition, found by kind.

#include <algorithm>
#include <array>
#include <string>

#include "reference/ops/collective_textbook.h"
#include "reference/ops/textbooks.h"

namespace gpubench {
namespace {

std::vector<const OpDefinition*> in_alphabetical_order() {
  std::vector<const OpDefinition*> all{&all_gather_definition(), &all_reduce_definition(),     &all_to_all_definition(),
                                       &broadcast_definition(),  &reduce_scatter_definition(), &send_recv_definition()};
  constexpr std::array<Definitions*, 15> textbooks{
      attention_definitions, attention_backward_definitions, column_sum_definitions,
      conv2d_definitions,    cross_entropy_definitions,      embedding_definitions,
      gemm_definitions,      gemm_bias_gradient_definitions, norm_definitions,
      move_definitions,      optimizer_definitions,          pointwise_definitions,
      quantize_definitions,  norm_backward_definitions,      rotary_definitions};
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

}  // namespace gpubench
