#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/collective.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/definition.h"
#include "reference/ops/dropout.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/pool.h"
#include "reference/ops/quantize.h"
#include "reference/ops/rotary.h"
#include "reference/ops/routing.h"
#include "reference/ops/softmax.h"
#include "reference/ops/token_exchange.h"
#include "reference/ops/token_groups.h"
#include "tests/paths.h"
#include "tests/reference/ops/textbook_run.h"
#include "tests/reference/pointwise_programs.h"

namespace gpubench {

Definitions pointwise_definitions();  // as the generated table declares it

}  // namespace gpubench

namespace gpubench::testing {
namespace definitions_test {

TEST(Definitions, AreInAlphabeticalOrderWithoutRepeats) {
  const auto all = definitions();
  ASSERT_GE(all.size(), 2U);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1]->kind().name, all[i]->kind().name);
}

TEST(Definitions, OfOpsThatTreatEveryElementAlikeAreThoseOfThatList) {
  std::set<std::string_view> defined, listed;
  for (const OpDefinition* op : pointwise_definitions()) defined.insert(op->kind().name);
  for (const OpKind& kind : pointwise_kinds) listed.insert(kind.name);
  EXPECT_EQ(listed, defined);
}

TEST(Definitions, AnUnknownKindIsAnErrorNamingTheKnownOnes) {
  const std::string message = program_error([] { (void)definition(OpKind{"gem"}); });

  EXPECT_EQ(message.rfind("no op 'gem'; expected one of: adamw, add, ", 0), 0U) << message;
}

TEST(Definitions, TheCostOfAProgramCountsTimedOpsOnly) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {10});
  program.begin(Phase::setup);
  const ValueId y = copy(program, "set-up", x);
  program.begin(Phase::timed);
  (void)scale(program, {2.0}, f32_math, "step", y);

  EXPECT_EQ(cost_of(program).bytes, 80.0);
  EXPECT_EQ(cost_of(program).flop, 10.0);
}

void add_matrix_ops(Program& p) {
  const ValueId x = source(p, "x", DType::f32, {3, 4});
  const ValueId y = source(p, "y", DType::f32, {3, 4});
  for (const PointwiseCase& op : pointwise_cases()) (void)op.build(p, x, y);
  (void)cast(p, DType::bf16, "cast", x);
  (void)column_sum(p, f32_math, "column_sum", x);
  const ValueId words = source(p, "words", DType::i32, {2});
  (void)dropout(p, {}, f32_math, "dropout", x, {words, words});
  (void)gemm(p, {.transpose_b = true}, f32_math, "gemm", x, y);
  const Gemm gelu_gradient{.transpose_b = true, .epilogue = Gemm::Epilogue::gelu_gradient};
  const ValueId pre = source(p, "pre", DType::f32, {3, 3});
  (void)gemm_gelu_bias_gradient(p, gelu_gradient, f32_math, "gelu_bias", x, y, pre);
  (void)gemm_weight_bias_gradient(p, {{.transpose_a = true}}, f32_math, "weight_bias", x, y);
  (void)quantize(p, {}, f32_math, "quantize", x, source(p, "quantize.scale", DType::f32, {1}));
  (void)quantize_blocks(p, {}, f32_math, "quantize_blocks", source(p, "blocks", DType::f32, {2, 32}));
  const ValueId largest = amax(p, f32_math, "amax", x);
  (void)scale_from_amax(p, {}, f32_math, "scale_from_amax", largest);
  (void)reorder(p, Layout::ordered({3, 4}, std::array{1, 0}), "reorder", x);
  const ValueId one_of_each = source(p, "one_of_each", DType::f32, {3, 1, 4});
  const ValueId repeated = p.reserve(tensor("repeated", DType::f32, {3, 2, 4}, Role::activation));
  repeat_rows_into(p, f32_math, "repeat_rows", one_of_each, repeated);
  (void)transpose(p, {{1, 0}}, "transpose", x);
  const ValueId row = source(p, "row", DType::f32, {4});
  const LayerNormForward norm = layer_norm_forward(p, {}, f32_math, "norm", x, row, row);
  (void)layer_norm_backward(p, {}, f32_math, "norm.backward", y, x, row, norm.mean, norm.rstd);
  (void)layer_norm_backward(p, {}, f32_math, "residual_norm.backward", y, x, row, norm.mean, norm.rstd, x);
  (void)residual_norm_forward(p, {}, f32_math, "residual_norm", x, y, row, row);
  const ValueId running_mean = source(p, "running_mean", DType::f32, {4});
  const ValueId running_var = source(p, "running_var", DType::f32, {4});
  const BatchNormForward batch =
      batch_norm_forward(p, {}, f32_math, "batch_norm", x, {row, row, running_mean, running_var});
  (void)batch_norm_backward(p, f32_math, "batch_norm.backward", y, x, row, batch.mean, batch.rstd);
  (void)batch_norm_relu_backward(p, {.dy2 = true, .dr = true}, f32_math, "batch_norm_relu.backward",
                                 {x, row, batch.mean, batch.rstd, batch.y}, y, x);
  (void)batch_norm_relu_forward(
      p, {}, f32_math, "batch_norm_relu", x,
      {row, row, source(p, "running_mean2", DType::f32, {4}), source(p, "running_var2", DType::f32, {4})}, y);
  const RmsNormForward rms = rms_norm_forward(p, {}, f32_math, "rms_norm", x, row);
  (void)rms_norm_backward(p, {}, f32_math, "rms_norm.backward", y, x, row, rms.rstd);
}

void add_model_ops(Program& p) {
  const ValueId image = source(p, "image", DType::f32, {1, 4, 4, 2});
  const ValueId filter = source(p, "filter", DType::f32, {3, 3, 3, 2});
  const Conv2d conv{.pad_h = 1, .pad_w = 1};
  const ValueId features = conv2d_forward(p, conv, f32_math, "conv", image, filter);
  (void)conv2d_backward_data(p, conv, f32_math, "conv.dx", features, filter, 4, 4);
  (void)conv2d_backward_filter(p, conv, f32_math, "conv.dfilter", image, features, 3, 3);
  const auto of_features = [&](const char* name) { return source(p, name, DType::f32, {3}); };
  const BatchNormChannels channels{of_features("features.gamma"), of_features("features.beta"),
                                   of_features("features.mean"), of_features("features.var")};
  (void)conv2d_batch_norm_forward(p, {.conv = conv}, f32_math, "conv_norm", image, filter, channels);
  const Pool window{.window_h = 2, .window_w = 3};
  const MaxPoolForward pooled = max_pool_forward(p, window, f32_math, "max_pool", image);
  (void)max_pool_backward(p, window, f32_math, "max_pool.backward", pooled.y, pooled.index, 4, 4);
  const ValueId mean = average_pool_forward(p, window, f32_math, "average_pool", image);
  (void)average_pool_backward(p, window, f32_math, "average_pool.backward", mean, 4, 4);
  const ValueId q = source(p, "q", DType::f32, {1, 4, 2, 3});
  const AttentionForward attention = attention_forward(p, {}, f32_math, "attention", q, q, q);
  (void)attention_backward(p, {}, f32_math, "attention.backward", q, q, q, q, attention.o, attention.lse);
  attention_merge(p, f32_math, "attention.merge", attention, attention);
  const ValueId turned = source(p, "turned", DType::f32, {1, 3, 2, 4});
  const ValueId angles = source(p, "angles", DType::f32, {3, 2});
  (void)rotary(p, {}, f32_math, "rotary", turned, {angles, angles});
  const ValueId labels = source(p, "labels", DType::i32, {3});
  const ValueId logits = source(p, "logits", DType::f32, {3, 4});
  const CrossEntropyForward loss = cross_entropy_forward(p, f32_math, "loss", logits, labels);
  (void)cross_entropy_backward(p, f32_math, "loss.backward", logits, labels, loss.lse);
  (void)cross_entropy_forward_backward(p, f32_math, "loss_and_gradient", logits, labels);
  (void)cross_entropy_partial(p, f32_math, "partial_loss", logits, labels, {.classes = 8});
  (void)cross_entropy_combine(p, f32_math, "combined_loss", logits, logits, source(p, "four", DType::i32, {4}), {});
  (void)count_labels(p, {}, f32_math, "counted_labels", labels);
  (void)embedding_forward(p, "embedding", logits, labels);
  const ValueId dtable = embedding_backward(p, f32_math, "embedding.backward", logits, labels, 5);
  (void)embedding_backward_add(p, f32_math, "embedding.backward_add", logits, labels, dtable);
}

void add_expert_ops(Program& p) {
  const ValueId scores = source(p, "scores", DType::f32, {3, 4});
  (void)softmax_backward(p, f32_math, "softmax.backward", softmax_forward(p, f32_math, "softmax", scores), scores);
  const Routing two{.k = 2, .normalize = true};
  const RoutingForward routed = routing_forward(p, two, f32_math, "routing", scores);
  (void)routing_backward(p, two, f32_math, "routing.backward", scores, routed.indices, routed.weights);
  const TokenGroups groups = group_tokens(p, {.experts = 4}, "groups", routed.indices);
  const ValueId rows = permute_tokens(p, f32_math, "permuted", scores, groups.order);
  const ValueId experts = source(p, "experts", DType::f32, {4, 4, 5});
  const ValueId made = grouped_gemm(p, {}, f32_math, "grouped", rows, experts, groups.sizes);
  (void)grouped_gemm_backward_weight(p, f32_math, "grouped.db", rows, made, groups.sizes);
  const ValueId back = unpermute_tokens(p, f32_math, "unpermuted", made, groups.places, routed.weights);
  (void)unpermute_backward_weights(p, f32_math, "unpermuted.dweights", made, groups.places, back);
}

void add_optimizer_ops(Program& p) {
  const auto parameter = [&p](const std::string& name) { return source(p, name, DType::f32, {4}); };
  const std::array gradients{parameter("g1"), parameter("g2")};
  const ValueId norm = gradient_norm(p, f32_math, "gradient_norm", gradients);
  const std::vector<ValueId> clipped = clip(p, {}, f32_math, "clip", norm, gradients);
  const ValueId copied = source(p, "w_copy", DType::bf16, {4});
  const std::array tensors{AdamWTensor{parameter("w"), clipped[0], parameter("m"), parameter("v"), copied}};
  const ValueId lr = source(p, "lr", DType::f32, {1});
  const ValueId step = source(p, "step", DType::i32, {1});
  adamw(p, {.copies = true}, f32_math, "adamw", lr, step, tensors);
  const std::array others{AdamWTensor{parameter("w2"), parameter("g3"), parameter("m2"), parameter("v2"), {}}};
  clip_adamw(p, {}, f32_math, "clip_adamw", norm, lr, step, others);
  const std::array moments{SgdTensor{parameter("w3"), parameter("g4"), parameter("m3"), copied}};
  sgd(p, {.weight_decay = 0.5, .nesterov = true, .copies = true}, f32_math, "sgd", lr, moments);
  const std::array signs{SgdTensor{parameter("w4"), parameter("g7"), parameter("m4"), {}}};
  lion(p, {}, f32_math, "lion", lr, signs);
  const ValueId loss_scale = source(p, "loss_scale", DType::f32, {1});
  const std::array scaled{parameter("g5"), source(p, "g6", DType::bf16, {4})};
  const ValueId found_inf = unscale(p, f32_math, "unscale", loss_scale, scaled).found_inf;
  update_scale(p, {}, "update_scale", loss_scale, source(p, "tracker", DType::i32, {1}), found_inf);
}

void add_collectives(Program& p) {
  std::vector<ValueId> x;
  for (int rank = 0; rank < 2; ++rank) {
    TensorSpec spec = tensor(name_on_rank("message", rank, 2), DType::f32, {4}, Role::input);
    spec.placement = Placement::shard(0, rank, 2);
    x.push_back(p.add(std::move(spec)));
  }
  (void)all_gather(p, {2}, "all_gather", x);
  (void)all_reduce(p, {2}, f32_math, "all_reduce", x);
  (void)all_to_all(p, {2, {2, 2, 2, 2}}, "all_to_all", x);
  (void)broadcast(p, {2, 0}, "broadcast", x[0]);
  (void)reduce_scatter(p, {2}, f32_math, "reduce_scatter", x);
  (void)send_recv(p, {2, 1}, "send_recv", x);
  std::vector<ValueId> rows, sizes;
  for (int rank = 0; rank < 2; ++rank) {
    for (const auto& [name, type, shape, ids] :
         {std::tuple{"rows", DType::f32, Shape{4, 3}, &rows}, {"sizes", DType::i32, Shape{2}, &sizes}}) {
      TensorSpec spec = tensor(name_on_rank(name, rank, 2), type, shape, Role::input);
      spec.placement = Placement::shard(0, rank, 2);
      ids->push_back(p.add(std::move(spec)));
    }
  }
  (void)return_tokens(p, {2}, "return_tokens", dispatch_tokens(p, {2}, "dispatch_tokens", rows, sizes).y, sizes);
}

Program every_op() {
  Program program;
  add_collectives(program);
  add_matrix_ops(program);
  add_model_ops(program);
  add_expert_ops(program);
  add_optimizer_ops(program);
  return program;
}

std::string bound_of(const Program& program, const OpCall& call, int output = 0) {
  return definition(call.kind).bound({call, specs_of(program, call.inputs), specs_of(program, call.outputs)}, output);
}

std::string bound_of(const Program& program, std::string_view label, int output = 0) {
  for (const OpCall& call : program.ops()) {
    if (call.label == label) return bound_of(program, call, output);
  }
  return "no op " + std::string(label);
}

// Integers 0 and 1 in turn (labels, tokens, a step), spread values, and 1 for what must be positive.
void fill_sources(const Program& program, TextbookRun& run) {
  for (std::size_t i = 0; i < program.values().size(); ++i) {
    const ValueId id{static_cast<int>(i)};
    const Value& value = program.value(id);
    if (value.producer) continue;
    const std::int64_t count = value.spec.shape.elements();
    std::vector<double> values = spread(count, i + 1);
    if (value.spec.dtype == DType::i32) {
      for (std::size_t e = 0; e < values.size(); ++e) values[e] = static_cast<double>((e + 1) % 2);
    }
    if (value.spec.name.starts_with("v") || value.spec.name == "lr") values.assign(values.size(), 1.0);
    run.set(id, values);
  }
}

TEST(Bounds, EveryOpNamesOneForEachOfItsOutputs) {
  const Program program = every_op();
  std::set<std::string_view> kinds;
  for (const OpCall& call : program.ops()) {
    kinds.insert(call.kind.name);
    for (std::size_t output = 0; output < call.outputs.size(); ++output) {
      const std::string text = bound_of(program, call, static_cast<int>(output));
      EXPECT_TRUE(text.rfind("exact, ", 0) == 0 || text.ends_with(", u = 2^-24")) << call.label << ": " << text;
    }
  }
  EXPECT_EQ(kinds.size(), definitions().size());
}

TEST(Bounds, AreCalledExactWhereAndOnlyWhereTheyAreZero) {
  const Program program = every_op();
  TextbookRun run(program);
  fill_sources(program, run);
  for (std::size_t op = 0; op < program.ops().size(); ++op) {
    const OpCall& call = program.ops()[op];
    for (std::size_t output = 0; output < call.outputs.size(); ++output) {
      double largest = 0.0;
      for (const Expected& judged : run.judge(static_cast<int>(op), static_cast<int>(output))) {
        EXPECT_TRUE(std::isfinite(judged.bound)) << call.label;
        largest = std::max(largest, judged.bound);
      }
      const std::string text = bound_of(program, call, static_cast<int>(output));
      if (text.rfind("exact where ", 0) == 0) continue;  // depends on the data: collective_test.cpp
      EXPECT_EQ(text.rfind("exact, ", 0) == 0, largest == 0.0) << call.label << ": " << text;
    }
    run.run(static_cast<int>(op));
  }
}

std::string operands_text(std::string_view operands) {
  std::string text;
  for (const char c : operands) text += c == ' ' ? std::string(", ") : std::string(1, c);
  return text;
}

TEST(Definitions, SayWhatEveryOpComputesAndWhatEachOperandIs) {
  for (const OpDefinition* op : definitions()) {
    const OpKind kind = op->kind();
    const OpDoc doc = doc_of(kind);
    EXPECT_TRUE(doc.meaning.ends_with('.')) << kind.name;
    EXPECT_FALSE(doc.body.empty()) << kind.name;
    std::multiset<std::string_view> declared, documented;
    for (const std::string_view operands : {kind.inputs, kind.outputs}) {
      for (const DeclaredOperand& operand : declared_operands(operands)) declared.insert(operand.name);
    }
    for (const OpDoc::Operand& operand : doc.operands) {
      documented.insert(operand.name);
      EXPECT_FALSE(operand.text.empty()) << kind.name << ' ' << operand.name;
    }
    EXPECT_EQ(documented, declared) << kind.name;
    for (const Attribute& attribute : make_attributes(kind).list())
      EXPECT_NE(kind.doc.find(attribute.name), std::string_view::npos) << kind.name << ' ' << attribute.name;
  }
}

// The table of reference/ops/README.md, from the declarations; GPUBENCH_UPDATE_GOLDEN=1 rewrites it.
TEST(Definitions, AreTheTableOfTheDocs) {
  std::string table = "| op | inputs | outputs | attributes |\n| --- | --- | --- | --- |\n";
  for (const OpDefinition* op : definitions()) {
    std::vector<std::string_view> attributes;
    for (const Attribute& attribute : make_attributes(op->kind()).list()) attributes.push_back(attribute.name);
    table += "| `" + std::string(op->kind().name) + "` | " + operands_text(op->kind().inputs) + " | " +
             operands_text(op->kind().outputs) + " | " + with_commas(attributes) + " |\n";
  }
  const std::string path = paths::ops_readme;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string begin = "<!-- ops -->\n";
  const std::size_t first = text.str().find(begin) + begin.size();
  const std::size_t last = text.str().find("<!-- end of ops -->");
  ASSERT_LE(first, last);
  if (std::getenv("GPUBENCH_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text.str().substr(0, first) << table << text.str().substr(last);
    return;
  }
  EXPECT_EQ(text.str().substr(first, last - first), table);
}

TEST(Bounds, NameTheirNumbers) {
  const Program program = every_op();

  EXPECT_EQ(bound_of(program, "copy"), "exact, bitwise");
  EXPECT_EQ(bound_of(program, "cast"), "exact, rounded once to bf16");
  EXPECT_EQ(bound_of(program, "gemm"), "Rule G: 2 u sqrt(4) max(|C| + Q, 2 S), u = 2^-24");
  EXPECT_EQ(bound_of(program, "column_sum"), "Rule G: 2 u sqrt(3) max(|C| + Q, 2 S), u = 2^-24");
  EXPECT_EQ(bound_of(program, "conv"), "Rule G: 2 u sqrt(K) max(|C| + Q, 2 S), K <= 18, u = 2^-24");     // 3 * 3 * 2
  EXPECT_EQ(bound_of(program, "conv.dx"), "Rule G: 2 u sqrt(K) max(|C| + Q, 2 S), K <= 27, u = 2^-24");  // 3 * 3 * 3
  EXPECT_EQ(bound_of(program, "conv.dfilter"), "Rule G: 2 u sqrt(K) max(|C| + Q, 2 S), K <= 16, u = 2^-24");  // 4 * 4
  EXPECT_EQ(bound_of(program, "triad"), "u (|3 c| + |y|), u = 2^-24");
  // 0.3 in f32 is 0.300000011920929
  EXPECT_EQ(bound_of(program, "scale factor=0.3"), "u |y| + 1.19209e-08 |x|, u = 2^-24");
  EXPECT_EQ(bound_of(program, "adamw", 2), "3 u |v'|, u = 2^-24");
  EXPECT_EQ(bound_of(program, "sgd", 1), "u (3|0.9 m| + 2|g| + 4|0.5 w|), u = 2^-24");
  EXPECT_EQ(bound_of(program, "clip_adamw", 2), "3 u |v'| + 8 u (1 - 0.95) g^2, g as clipped, u = 2^-24");
  EXPECT_EQ(bound_of(program, "adamw", 3), "exact, bitwise: w' as stored, rounded once to bf16");
}

TEST(Bounds, OfABiasGradientBesideAProductSayWhatRoundingTheProductMayMove) {
  const Program program = every_op();
  Program narrow;
  const Gemm gelu_gradient{.epilogue = Gemm::Epilogue::gelu_gradient};
  const ValueId x = source(narrow, "x", DType::bf16, {4, 4});
  (void)gemm_gelu_bias_gradient(narrow, gelu_gradient, f32_math, "gelu_bias", x, x, x);

  EXPECT_EQ(bound_of(program, "gelu_bias", 1), "Rule G: 2 u sqrt(3) max(|C| + Q, 2 S), u = 2^-24");
  EXPECT_EQ(bound_of(program, "weight_bias", 0), "Rule G: 2 u sqrt(3) max(|C| + Q, 2 S), u = 2^-24");
  EXPECT_EQ(bound_of(program, "weight_bias", 1), "Rule G: 2 u sqrt(3) max(|C| + Q, 2 S), u = 2^-24");
  EXPECT_EQ(bound_of(narrow, "gelu_bias", 1),
            "of dz as stored: Rule G: 2 u sqrt(4) max(|C| + Q, 2 S) + min(sum e, 6 sigma), e = 2^-8 |dz|, u = 2^-24");
}

TEST(Bounds, OfAGemmFollowItsEpilogueAndItsAccumulator) {
  Program program;
  const ValueId a = source(program, "a", DType::f64, {2, 768});
  const ValueId b = source(program, "b", DType::f64, {768, 3});
  const ValueId bias = source(program, "bias", DType::f64, {3});
  const Gemm fused{.alpha = 0.5, .bias = true, .epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf};
  (void)gemm(program, {}, f64_math, "plain", a, b);
  (void)gemm(program, fused, f64_math, "fused", a, b, {.bias = bias});
  const std::string z = "Rule G: 0.5 * 2 u sqrt(768) max(|C| + Q, 2 S) + 3 u (0.5 |C| + |bias|), u = 2^-53";

  EXPECT_EQ(bound_of(program, "plain"), "Rule G: 2 u sqrt(768) max(|C| + Q, 2 S), u = 2^-53");
  EXPECT_EQ(bound_of(program, "fused", 0), "1.13 T + u (6|y| + 3|z|), T = " + z);
  EXPECT_EQ(bound_of(program, "fused", 1), z);
}

}  // namespace definitions_test
}  // namespace gpubench::testing
