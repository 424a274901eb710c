// Look-up of rows by token, and the scatter-add that is its gradient.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind embedding_forward_kind{"embedding_forward", "table tokens", "y", {}, R"(
Looks up the rows of tokens in a table.
table: [vocabulary, h]
tokens: i32 [t]
y: [t, h], table's type

y[i] = table[tokens[i]])"};

inline constexpr OpKind embedding_backward_kind{"embedding_backward", "dy tokens", "dtable", {}, R"(
The gradient of embedding_forward's table: a scatter-add.
dy: [t, h]
tokens: i32 [t]
dtable: [vocabulary, h], dy's type

dtable[v] = the sum of dy over the rows of token v, zero for tokens that do not occur)"};

inline constexpr OpKind embedding_backward_add_kind{"embedding_backward_add", "dy tokens dtable", "dtable'", {}, R"(
embedding_backward, added to a gradient that the table has from elsewhere (tied embeddings).
dy: [t, h]
tokens: i32 [t]
dtable: [vocabulary, h], dy's type
dtable': an update

dtable'[v] = dtable[v] + the sum of dy over the rows of token v, rounded once; rows whose token does not occur are
neither read nor written.)"};

ValueId embedding_forward(Program& program, std::string label, ValueId table, ValueId tokens);
ValueId embedding_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                           std::int64_t vocabulary);
ValueId embedding_backward_add(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                               ValueId dtable);

}  // namespace gpubench
