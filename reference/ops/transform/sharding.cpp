#include "reference/ops/transform/partition.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "reference/ops/attention.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"
#include "reference/ops/rotary.h"

namespace gpubench {
namespace {

/// Operands that no rule mentions are whole.
class Sharing {
 public:
  Sharing(const Program& program, const OpCall& call, std::span<const MaybeCut> cuts)
      : program_(program), call_(call), cuts_(cuts) {
    result_.inputs.resize(call.inputs.size());
    result_.outputs.resize(call.outputs.size());
    result_.addends.resize(call.outputs.size());
  }

  [[nodiscard]] const OpCall& call() const { return call_; }
  [[nodiscard]] const TensorSpec& input(std::size_t i) const { return program_.spec(call_.inputs[i]); }
  [[nodiscard]] const TensorSpec& output(std::size_t i) const { return program_.spec(call_.outputs[i]); }
  [[nodiscard]] const MaybeCut& cut(std::size_t input) const { return cuts_[input]; }
  /// None if it is whole or absent.
  [[nodiscard]] MaybeCut cut(std::string_view name) const {
    const auto at = position_of(call_.kind.inputs, call_.attributes, name);
    return at && *at < cuts_.size() ? cuts_[*at] : MaybeCut{};
  }

  void set(std::initializer_list<std::string_view> names, const MaybeCut& cut) {
    for (const std::string_view name : names) {
      if (const auto at = position_of(call_.kind.inputs, call_.attributes, name); at && *at < result_.inputs.size())
        result_.inputs[*at] = cut;
      if (const auto at = position_of(call_.kind.outputs, call_.attributes, name); at && *at < result_.outputs.size())
        result_.outputs[*at] = cut;
    }
  }
  void set_input(std::size_t i, const MaybeCut& cut) { result_.inputs[i] = cut; }
  void set_output(std::size_t i, const MaybeCut& cut) { result_.outputs[i] = cut; }
  void adds_up(std::string_view output, Reduction reduction = Reduction::sum) {
    if (const auto at = position_of(call_.kind.outputs, call_.attributes, output)) result_.addends[*at] = reduction;
  }
  void bias_on_first() { result_.bias_on_first = true; }
  [[nodiscard]] OpSharding take() && { return std::move(result_); }

 private:
  const Program& program_;
  const OpCall& call_;
  std::span<const MaybeCut> cuts_;
  OpSharding result_;
};

bool is_along(const MaybeCut& cut, int axis) { return cut && cut->axis == axis; }

// c [m, n] of a [m, k] and b [k, n]. By columns: b and c are cut along n, and a is whole. Rows of a weight gradient: a,
// transposed, and c are cut along m. By terms: both are cut along k, and ranks have addends of c. Cut rows with a whole
// weight are not shared but gathered.
void share_gemm(Sharing& op) {
  const Gemm& gemm = op.call().attributes.as<Gemm>();
  if (op.input(0).shape.rank() != 2 || gemm.blocks) return;
  const int m = gemm.transpose_a ? 1 : 0;
  const int n = gemm.transpose_b ? 0 : 1;
  const MaybeCut a = op.cut("a");
  const MaybeCut b = op.cut("b");
  if (is_along(b, n)) {
    op.set({"b"}, b);
    op.set({"bias"}, Cut{0, b->sections});
    op.set({"c_in", "pre", "c", "z"}, Cut{1, b->sections});
  } else if (gemm.transpose_a && is_along(a, m) && !gemm.bias) {
    op.set({"a"}, a);
    op.set({"c_in", "pre", "c", "z"}, Cut{0, a->sections});
  } else if ((is_along(a, 1 - m) || is_along(b, 1 - n)) && gemm.beta == 0.0 && gemm.epilogue == Gemm::Epilogue::none) {
    const std::vector<std::int64_t> sections = is_along(b, 1 - n) ? b->sections : a->sections;
    op.set({"a"}, Cut{1 - m, sections});
    op.set({"b"}, Cut{1 - n, sections});
    op.adds_up("c");
    if (gemm.bias) op.bias_on_first();
  }
}

void share_attention(Sharing& op) {
  constexpr int heads = 2;  // of [b, s, heads, d]
  bool any = false;
  for (const std::string_view name : {"q", "k", "v", "do", "o"}) any = any || is_along(op.cut(name), heads);
  if (!any) return;
  op.set({"q", "k", "v", "do", "o", "dq", "dk", "dv"}, Cut{heads});
  op.set({"lse"}, Cut{1});
  op.set({"sinks", "dsinks"}, Cut{0});
}

void share_rotary(Sharing& op) {
  const MaybeCut x = op.cut("x");
  if (is_along(x, 0) || is_along(x, 2)) op.set({"x", "y"}, x);
}

// By rows of the table: each rank looks up its rows; the others' are 0.
void share_embedding(Sharing& op) {
  if (op.cut("table") != MaybeCut{Cut{0}}) return;
  op.set({"table"}, Cut{0});
  op.adds_up("y");
}

// By classes: each rank makes a part of the loss, which the transform combines, and its gradients.
void share_cross_entropy(Sharing& op) {
  constexpr int classes = 1;
  if (op.cut("logits") == MaybeCut{Cut{classes}}) op.set({"logits", "dlogits"}, Cut{classes});
}

// Along any axis that all operands have; if some have fewer rows, only the last.
void share_pointwise(Sharing& op) {
  MaybeCut cut;
  for (std::size_t i = 0; i < op.call().inputs.size(); ++i) {
    if (!cut && op.cut(i) && op.input(i).shape == op.output(0).shape) cut = op.cut(i);
  }
  if (!cut) return;
  const bool last = cut->axis == op.output(0).shape.rank() - 1;
  for (std::size_t i = 0; i < op.call().inputs.size(); ++i) {
    if (op.input(i).shape != op.output(0).shape && !last) return;
  }
  for (std::size_t i = 0; i < op.call().inputs.size(); ++i) {
    op.set_input(
        i, Cut{op.input(i).shape.rank() - (op.output(0).shape.rank() - cut->axis), cut->sections, cut->of_experts});
  }
  for (std::size_t i = 0; i < op.call().outputs.size(); ++i) op.set_output(i, cut);
}

// An 8-bit copy laid out for products that sum over rows. A weight's copy is of the rank's rows; products need all
// tokens, which could not be gathered from transposed copies.
void share_reorder(Sharing& op) {
  const bool keeps_rows = op.output(0).layout.is_row_major(op.output(0).shape);
  if (keeps_rows || !is_along(op.cut("x"), 0) || op.input(0).role == Role::parameter) share_pointwise(op);
}

// A tensor has one scale, as on one rank: by the largest element of all parts.
void share_quantize(Sharing& op) {
  const MaybeCut x = op.cut("x");
  if (!x) return;
  op.set({"x", "values"}, x);
  op.adds_up("amax", Reduction::maximum);
}

// By rows, each with its statistics; gradients of shared parameters are sums over the ranks' rows.
void share_norm(Sharing& op) {
  bool any = false;
  for (const std::string_view name : {"x", "r", "dy", "dr"}) any = any || is_along(op.cut(name), 0);
  if (!any || op.input(0).shape.rank() < 2) return;
  op.set({"x", "r", "dy", "dr", "y", "sum", "dx", "mean", "rstd"}, Cut{0});
  op.adds_up("dgamma");
  op.adds_up("dbeta");
}

void share_column_sum(Sharing& op) {
  const MaybeCut x = op.cut("x");
  if (!x || op.output(0).shape.rank() != 1) return;
  const bool by_columns = x->axis == op.input(0).shape.rank() - 1;
  op.set({"x"}, x);
  if (by_columns) {
    op.set({"y"}, Cut{0, x->sections});
  } else {
    op.adds_up("y");
  }
}

// Lists of tensors, each cut as its parameter; `leader`, a weight or gradient, decides for each item.
void share_lists(Sharing& op, std::string_view leader) {
  const OpCall& call = op.call();
  std::map<std::size_t, MaybeCut> of_item;
  const std::vector<OperandName> inputs = operand_names(call.kind.inputs, call.attributes, call.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == leader) of_item[inputs[i].item] = op.cut(i);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_of_parameter(inputs[i].name)) op.set_input(i, of_item.at(inputs[i].item));
  }
  const std::vector<OperandName> outputs = operand_names(call.kind.outputs, call.attributes, call.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_of_parameter(outputs[i].name)) op.set_output(i, of_item.at(outputs[i].item));
  }
  if (call.kind == unscale_kind) op.adds_up("found_inf", Reduction::maximum);
}

}  // namespace

bool takes_parameters(const OpKind& kind) {
  constexpr std::array kinds{gradient_norm_kind, clip_kind, unscale_kind, adamw_kind,
                             clip_adamw_kind,    lion_kind, sgd_kind};
  return std::ranges::any_of(kinds, [&](const OpKind& each) { return each == kind; });
}

bool is_of_parameter(std::string_view operand) {
  constexpr std::array<std::string_view, 10> lists{"w", "g", "m", "v", "copy", "w'", "g'", "m'", "v'", "copy'"};
  return std::ranges::find(lists, operand) != lists.end();
}

std::string_view leading_list(const OpKind& kind) { return declares(kind.inputs, "w") ? "w" : "g"; }

OpSharding sharding_of(const Program& program, const OpCall& call, std::span<const MaybeCut> inputs) {
  Sharing op(program, call, inputs);
  const auto is_one_of = [&call](std::initializer_list<OpKind> kinds) {
    return std::ranges::any_of(kinds, [&call](const OpKind& kind) { return call.kind == kind; });
  };
  if (call.kind == gemm_kind) {
    share_gemm(op);
  } else if (is_one_of({attention_forward_kind, attention_backward_kind})) {
    share_attention(op);
  } else if (call.kind == rotary_kind) {
    share_rotary(op);
  } else if (call.kind == embedding_forward_kind) {
    share_embedding(op);
  } else if (is_one_of({cross_entropy_forward_kind, cross_entropy_backward_kind})) {
    share_cross_entropy(op);
  } else if (is_pointwise(call.kind) || call.kind == copy_kind) {
    share_pointwise(op);
  } else if (call.kind == reorder_kind) {
    share_reorder(op);
  } else if (is_one_of({amax_kind, quantize_kind})) {
    share_quantize(op);
  } else if (is_one_of({layer_norm_forward_kind, layer_norm_backward_kind, rms_norm_forward_kind,
                        rms_norm_backward_kind, residual_norm_forward_kind, residual_norm_backward_kind})) {
    share_norm(op);
  } else if (call.kind == column_sum_kind) {
    share_column_sum(op);
  } else if (takes_parameters(call.kind)) {
    share_lists(op, leading_list(call.kind));
  }
  return std::move(op).take();
}

OpSharding expert_sharding_of(const Program& program, const OpCall& call, std::span<const MaybeCut> inputs) {
  Sharing op(program, call, inputs);
  if (call.kind == grouped_gemm_kind) {
    op.set({"a", "sizes", "c"}, rows_of_experts);
    op.set({"b"}, Cut{0});
  } else if (call.kind == grouped_gemm_backward_weight_kind) {
    op.set({"a", "b", "sizes"}, rows_of_experts);
    op.set({"c"}, Cut{0});
  } else if (is_pointwise(call.kind) || call.kind == copy_kind || call.kind == reorder_kind) {
    share_pointwise(op);
  }
  return std::move(op).take();
}

}  // namespace gpubench
