// Row look-up by token, and its gradient, a scatter-add; for ranks that share a table, of one rank's rows (Shoeybi et
// al., arXiv 1909.08053, 3).
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct TableRows {
  std::int64_t first = 0;
  std::int64_t vocabulary = 0;      ///< rows on all ranks; 0: the table has all
  std::int64_t padding_token = -1;  ///< its row gets no gradient; -1: none
  static void visit(auto&& attribute) {
    attribute("first", &TableRows::first);
    attribute("vocabulary", &TableRows::vocabulary);
    attribute("padding_token", &TableRows::padding_token);
  }
  [[nodiscard]] std::int64_t all_rows(std::int64_t here) const { return vocabulary == 0 ? here : vocabulary; }
  [[nodiscard]] bool knows(std::int64_t token, std::int64_t here) const { return token >= 0 && token < all_rows(here); }
};

inline constexpr OpKind embedding_forward_kind{"embedding_forward", "table tokens", "y", defaults_of<TableRows>, R"(
Looks up the rows of tokens in a table.
table: [rows, h], rows first ... of a vocabulary
tokens: i32 [t]
y: [t, h], table's type

y[i] = table[tokens[i] - first]; 0 if another rank has the token's row, NaN if the token is not in the vocabulary.
padding_token (PyTorch's padding_idx) is looked up like any other; only its gradient differs.)"};

inline constexpr OpKind embedding_backward_kind{"embedding_backward", "dy tokens", "dtable", defaults_of<TableRows>, R"(
The gradient of embedding_forward's table: a scatter-add.
dy: [t, h]
tokens: i32 [t]
dtable: [rows, h], dy's type

dtable[v] = the sum of dy over the rows of token first + v; 0 for absent tokens and for padding_token (PyTorch's
padding_idx; -1: none). All ranks together have `vocabulary` rows.)"};

inline constexpr OpKind embedding_backward_add_kind{"embedding_backward_add", "dy tokens dtable", "dtable'",
                                                    defaults_of<TableRows>, R"(
embedding_backward, added to a gradient that the table has from elsewhere (tied embeddings).
dy: [t, h]
tokens: i32 [t]
dtable: [rows, h], dy's type
dtable': an update

dtable'[v] = dtable[v] + the sum of dy over the rows of token first + v, rounded once; rows of absent tokens and of
padding_token are neither read nor written. first, vocabulary and padding_token as in embedding_backward.)"};

ValueId embedding_forward(Program& program, std::string label, ValueId table, ValueId tokens,
                          const TableRows& attributes = {});
ValueId embedding_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                           std::int64_t rows, const TableRows& attributes = {});
ValueId embedding_backward_add(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                               ValueId dtable, const TableRows& attributes = {});

}  // namespace gpubench
