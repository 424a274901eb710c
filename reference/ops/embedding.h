// Look-up of rows by token, and the scatter-add that is its gradient.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// table [vocabulary, h], tokens i32 [t] -> y [t, h] (table's type), y[i] = table[tokens[i]]
inline constexpr OpKind embedding_forward_kind{"embedding_forward", "table tokens", "y"};
/// dy [t, h], tokens i32 [t] -> dtable [vocabulary, h] (dy's type): the sum of dy over the rows of each token, zero for
/// tokens that do not occur
inline constexpr OpKind embedding_backward_kind{"embedding_backward", "dy tokens", "dtable"};
/// The same, added to a gradient that the table has from elsewhere (tied embeddings): dtable [vocabulary, h] (dy's
/// type)
/// -> dtable', an update, each sum rounded once; rows whose token does not occur are neither read nor written.
inline constexpr OpKind embedding_backward_add_kind{"embedding_backward_add", "dy tokens dtable", "dtable'"};

ValueId embedding_forward(Program& program, std::string label, ValueId table, ValueId tokens);
ValueId embedding_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                           std::int64_t vocabulary);
ValueId embedding_backward_add(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                               ValueId dtable);

}  // namespace gpubench
