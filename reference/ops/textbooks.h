// Where the definitions of ops come from: one function per file of the textbook. definition() finds them all.
#pragma once

#include <array>
#include <tuple>

#include "reference/ops/definition.h"

namespace gpubench {

/// One object of each class, for as long as the program runs.
template <class... Definitions>
[[nodiscard]] std::span<const OpDefinition* const> definitions_of() {
  static const std::tuple<Definitions...> held;
  static const std::array<const OpDefinition*, sizeof...(Definitions)> all{&std::get<Definitions>(held)...};
  return all;
}

using Definitions = std::span<const OpDefinition* const>();
Definitions attention_definitions, attention_backward_definitions, bias_gradient_definitions,
    collective_move_definitions, collective_reduction_definitions, conv2d_definitions, cross_entropy_definitions,
    embedding_definitions, gemm_definitions, move_definitions, norm_definitions, norm_backward_definitions,
    optimizer_definitions, pointwise_definitions, quantize_definitions, rotary_definitions;

}  // namespace gpubench
