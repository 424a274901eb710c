// Ops on rows: norms, softmax, losses, embeddings.
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/norm.h"
#include "reference/ops/softmax.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

Shape rows_of(const VariantBuild& call) { return call.other("axes") == 2 ? Shape{3, call.n} : Shape{2, 3, call.n}; }

void build_layer_norm(VariantBuild& call) {
  const ValueId x = call.in("x", rows_of(call), Fill::norm_rows(1.0));
  const ValueId gamma = call.wide("gamma", {call.n}), beta = call.wide("beta", {call.n});
  call.y = {layer_norm_forward(call.p, call.attributes<LayerNorm>(), call.r.math, call.label, x, gamma, beta).y};
  call.wanted = {x, gamma, beta};
}

void build_rms_norm(VariantBuild& call) {
  const ValueId x = call.in("x", rows_of(call), Fill::norm_rows(1.0)), gamma = call.wide("gamma", {call.n});
  call.y = {rms_norm_forward(call.p, call.attributes<RmsNorm>(), call.r.math, call.label, x, gamma).y};
  call.wanted = {x, gamma};
}

void build_residual_norm(VariantBuild& call) {
  const auto& attributes = call.attributes<ResidualNorm>();
  const Shape rows = rows_of(call);
  const ValueId x = call.in("x", rows), r = call.in("r", rows);
  const ValueId gamma = call.wide("gamma", {call.n}), beta = call.wide("beta", {call.n});
  (void)residual_norm_forward(call.p, attributes, call.r.math, call.label, x, r, gamma, beta);
}

void build_residual_norm_backward(VariantBuild& call) {
  const auto& attributes = call.attributes<ResidualNorm>();
  const Shape rows = rows_of(call);
  const ValueId x = call.in("x", rows, Fill::norm_rows(1.0)), gamma = call.wide("gamma", {call.n});
  const LayerNormForward saved = layer_norm_forward(call.p, attributes, call.r.math, call.label + ".forward", x, gamma,
                                                    call.wide("beta", {call.n}));
  const ValueId dy = call.in("dy", rows), dr = call.in("dr", rows);
  (void)layer_norm_backward(call.p, attributes, call.r.math, call.label, dy, x, gamma, saved.mean, saved.rstd, dr);
}

void build_softmax(VariantBuild& call) {
  const ValueId x = call.in("x", rows_of(call), Fill::normal(2.0));
  call.y = {softmax_forward(call.p, call.r.math, call.label, x)};
  call.wanted = {x};
}

constexpr std::int64_t labelled = 9, looked_up = 11, table_rows = 13;

/// With `ignores` most labels, or all, are ignore_index.
ValueId labels_of(VariantBuild& call, const CrossEntropy& attributes, std::int64_t classes) {
  const bool counts = call.other("labels") != 0;
  if (!counts && !attributes.ignores)
    throw ProgramError("variants: labels that count for nothing, where none is ignored");
  const Fill fill = !attributes.ignores ? Fill::integers(0, classes - 1)
                    : counts            ? Fill::masked(0, classes - 1, attributes.ignore_index)
                                        : Fill::constant(attributes.ignore_index);
  return call.source("labels", DType::i32, {labelled}, fill);
}

void build_cross_entropy(VariantBuild& call) {
  const auto& attributes = call.attributes<CrossEntropy>();
  const ValueId logits = call.in("logits", {labelled, call.n}, Fill::normal(4.0)),
                labels = labels_of(call, attributes, call.n);
  std::optional<ValueId> dloss, count;
  if (attributes.scaled) dloss = call.wide("dloss", {1}, Fill::constant(32.0));
  if (attributes.given_count) count = call.wide("count", {1}, Fill::constant(5.0));
  const ValueId lse = cross_entropy_forward(call.p, call.r.math, call.label, logits, labels, attributes, count).lse;
  (void)cross_entropy_backward(call.p, call.r.math, call.label + ".backward", logits, labels, lse, false, attributes,
                               dloss, count);
  (void)cross_entropy_forward_backward(call.p, call.r.math, call.label + ".both", logits, labels, false, attributes,
                                       dloss, count);
}

/// Logits of the classes from `first` on, and the three ops that see a part of a loss.
void build_cross_entropy_parts(VariantBuild& call) {
  CrossEntropy attributes = call.attributes<CrossEntropy>();
  const std::int64_t elsewhere = call.other("elsewhere");
  const ValueId labels = labels_of(call, attributes, call.n + elsewhere);
  const Shape all{labelled, call.n + elsewhere};
  const ValueId logits = call.in("logits", all, Fill::normal(4.0));
  const ValueId lse =
      cross_entropy_forward(call.p, call.r.math, call.label + ".forward", logits, labels, attributes).lse;
  TensorSpec columns = tensor(call.label + ".part", call.r.tensor, {labelled, call.n}, Role::activation);
  columns.layout = Layout::row_major(all);
  const ValueId part = call.p.part(logits, columns, call.other("from"));
  const ValueId lses = call.wide("lses", {3, labelled}), scores = call.wide("scores", {3, labelled});
  std::optional<ValueId> count;
  if (attributes.given_count) count = call.wide("count", {1}, Fill::constant(5.0));
  (void)cross_entropy_combine(call.p, call.r.math, call.label + ".combine", lses, scores, labels, attributes, count);
  attributes.first = call.other("from");
  attributes.classes = elsewhere == 0 ? 0 : call.n + elsewhere;
  (void)cross_entropy_partial(call.p, call.r.math, call.label, part, labels, attributes);
  (void)cross_entropy_backward(call.p, call.r.math, call.label + ".backward", part, labels, lse, false, attributes);
}

void build_count_labels(VariantBuild& call) {
  const ValueId labels = call.integers("labels", {call.n}, -1, 4);
  (void)count_labels(call.p, call.attributes<CountLabels>(), call.r.math, call.label, labels, call.r.wide);
}

void build_embedding(VariantBuild& call) {
  const auto& attributes = call.attributes<TableRows>();
  const std::int64_t h = call.n - 2;
  const ValueId table = call.in("table", {table_rows, h});
  const ValueId ids = call.integers("tokens", {looked_up}, 0, attributes.all_rows(table_rows) - 1);
  call.y = {embedding_forward(call.p, call.label, table, ids, attributes)};
  call.wanted = {table};
}

void build_embedding_backward_add(VariantBuild& call) {
  const auto& attributes = call.attributes<TableRows>();
  const std::int64_t h = call.n - 2;
  const ValueId ids = call.integers("tokens", {looked_up}, 0, attributes.all_rows(table_rows) - 1);
  const ValueId dy = call.in("dy", {looked_up, h}), dtable = call.in("dtable", {table_rows, h});
  (void)embedding_backward_add(call.p, call.r.math, call.label, dy, ids, dtable, attributes);
}

}  // namespace

std::vector<Variants> row_variants() {
  const Factor epsilons{"epsilon", {1e-5, 0.25}}, axes{"axes", {2, 3}};
  const Factor smoothing{"label_smoothing", {0.0, 0.2}}, z_loss{"z_loss", {0.0, 0.01}},
      ignored{"ignore_index", {-100, 3}}, labels{"labels", {1, 0}};
  const std::vector<Factor> parts_of_tables{{"first", {0, 2}}, {"vocabulary", {0, 21}}, {"padding_token", {-1, 3, 0}}};
  return {
      {"layer_norm", layer_norm_forward_kind, {epsilons, axes}, build_layer_norm},
      {"rms_norm", rms_norm_forward_kind, {epsilons, {"rounds_before_gamma"}, axes}, build_rms_norm},
      {"residual_norm", residual_norm_forward_kind, {epsilons, axes}, build_residual_norm},
      {"residual_norm_backward", residual_norm_backward_kind, {epsilons, axes}, build_residual_norm_backward},
      {"softmax", softmax_forward_kind, {axes}, build_softmax},
      {"cross_entropy",
       cross_entropy_backward_kind,
       {{"ignores"}, ignored, smoothing, z_loss, {"scaled"}, {"given_count"}, labels},
       build_cross_entropy},
      {"cross_entropy_parts",
       cross_entropy_partial_kind,
       {{"ignores"}, ignored, smoothing, z_loss, {"given_count"}, labels, {"from", {0, 2, 4}}, {"elsewhere", {4, 0}}},
       build_cross_entropy_parts},
      {"count_labels", count_labels_kind, {{"ignore_index", {-100, 3}}, {"parts", {1, 3}}}, build_count_labels},
      {"embedding", embedding_forward_kind, parts_of_tables, build_embedding},
      {"embedding_backward_add", embedding_backward_add_kind, parts_of_tables, build_embedding_backward_add},
  };
}

}  // namespace gpubench::variants
