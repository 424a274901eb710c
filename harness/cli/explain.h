// What an op is, for those who implement it: its documentation, and what the declared cases show of it.
#pragma once

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/op_kind.h"
#include "harness/plan/plan.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// A call of the op in a declared case: in the smallest program that has it.
struct OpExample {
  std::string case_id;  ///< empty: no case has it
  std::string run;      ///< the command that runs an implementation on it
  bool fused = false;   ///< the case has it where a backend claims it (transform/fuse.h)
  std::string attributes;
  std::vector<std::pair<std::string, std::string>> tensors;  ///< by operand: "bf16 [512, 768]"
  std::vector<std::pair<std::string, std::string>> bounds;   ///< by output: the rule in words
  Cost cost{};
  std::size_t program_ops = 0;
};

struct OpOperand {
  std::string name, role;  ///< "input", "input, a list, where the attributes ask for it"
  std::string what;        ///< shape and type
};

struct OpExplanation {
  OpKind kind;
  OpDoc doc;
  std::vector<OpOperand> operands;
  std::vector<std::vector<std::string>> attributes;  ///< rows: name, kind, default, words
  OpExample example;
  std::set<std::string> workloads;    ///< "gemm/matmul", that have it, fused or not
  std::set<std::string> gradient_by;  ///< ops that compute its gradient
  std::set<std::string> gradient_of;  ///< ops whose gradient has it
};

/// The names of all ops, in alphabetical order.
[[nodiscard]] std::vector<std::string> op_names();

/// Of every op of the set, in alphabetical order. Builds the cases that the quick tier has in all precisions, which
/// takes a fraction of a second.
[[nodiscard]] std::vector<OpExplanation> explain_ops(std::span<const Suite> suites);

/// What stands before the command that runs an implementation.
inline constexpr std::string_view implementer_note =
    "An implementation of it, in C (gpubench/implementation.h) or Python, gets these operands and attributes by these "
    "names; gpubench impl new writes a starting point. To check and time one:";

/// The page of an op: self-contained HTML without scripts. Other ops are links to NAME.html beside it.
[[nodiscard]] std::string op_page(const OpExplanation& op);
/// The list of them, index.html.
[[nodiscard]] std::string op_index_page(std::span<const OpExplanation> all);

}  // namespace gpubench
