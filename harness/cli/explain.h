// The documentation of an op for implementers, with calls from the declared cases.
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

/// A call of the op in the smallest declared program that contains it.
struct OpExample {
  std::string case_id;  ///< empty: not in any case
  std::string run;      ///< the command that runs an implementation on it
  bool fused = false;   ///< only as part of an op that a backend fuses (transform/fuse.h)
  std::string attributes;
  std::vector<std::pair<std::string, std::string>> tensors;  ///< by operand: "bf16 [512, 768]"
  std::vector<std::pair<std::string, std::string>> bounds;   ///< by output: the rule as text
  Cost cost{};
  std::size_t program_ops = 0;
};

struct OpOperand {
  std::string name, role;  ///< "input", "input, a list, where the attributes ask for it"
  std::string what;
};

struct OpExplanation {
  OpKind kind;
  OpDoc doc;
  std::vector<OpOperand> operands;
  std::vector<std::vector<std::string>> attributes;  ///< name, kind, default, description
  OpExample example;
  std::set<std::string> workloads;  ///< "gemm/matmul": those with the op, fused or not
  std::set<std::string> gradient_by;
  std::set<std::string> gradient_of;  ///< ops with this gradient op
};

/// In alphabetical order.
[[nodiscard]] std::vector<std::string> op_names();

/// All ops, in alphabetical order. Builds the cases of tier quick in all precisions, in a fraction of a second.
[[nodiscard]] std::vector<OpExplanation> explain_ops(std::span<const Suite> suites);

/// Text before the command that runs an implementation.
inline constexpr std::string_view implementer_note =
    "An implementation in C (gpubench/implementation.h) or Python gets these operands and attributes by name; gpubench "
    "impl new writes a template. To check and time one:";

/// Self-contained HTML without scripts. Other ops are links to NAME.html in the same folder.
[[nodiscard]] std::string op_page(const OpExplanation& op);
[[nodiscard]] std::string op_index_page(std::span<const OpExplanation> all);

}  // namespace gpubench
