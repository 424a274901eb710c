// Ops on rows and on elements, the optimizer and collectives for the oracle.
#include <array>
#include <limits>
#include <string>
#include <tuple>

#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/collective.h"
#include "reference/ops/count_labels.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/dropout.h"
#include "reference/ops/embedding.h"
#include "reference/ops/loss_scaling.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/token_exchange.h"
#include "reference/ops/token_groups.h"
#include "tests/reference/ops/oracle/programs.h"
#include "tests/reference/ops/rank_tensors.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace {

ValueId of(Program& p, const std::string& name, const Shape& shape, Fill fill = {}) {
  return p.add(tensor(name, DType::f32, shape, Role::input, fill));
}
ValueId tokens(Program& p, const std::string& name, std::int64_t count, std::int64_t kinds) {
  return p.add(tensor(name, DType::i32, {count}, Role::input, Fill::integers(0, kinds - 1)));
}

void add_norms(OraclePrograms& all, const Shape& shape, double epsilon) {
  const Shape row{shape[-1]};
  const Fill rows = Fill::norm_rows(1);  // variances from 1 to 0
  const std::string text = shape.to_string() + " epsilon=" + std::to_string(epsilon);
  add_differentiated(all, "layer_norm " + text, [&](Program& p) -> OracleForward {
    const ValueId x = of(p, "x", shape, rows), gamma = of(p, "gamma", row), beta = of(p, "beta", row);
    return {{layer_norm_forward(p, {epsilon}, f32_math, "y", x, gamma, beta).y}, {x, gamma, beta}};
  });
  add_differentiated(all, "rms_norm " + text, [&](Program& p) -> OracleForward {
    const ValueId x = of(p, "x", shape, rows), gamma = of(p, "gamma", row);
    return {{rms_norm_forward(p, {epsilon}, f32_math, "y", x, gamma).y}, {x, gamma}};
  });
  add_program(all, "residual_norm " + text, [&](Program& p) {
    const ValueId x = of(p, "x", shape), gamma = of(p, "gamma", row);
    const ResidualNormForward norm =
        residual_norm_forward(p, {epsilon}, f32_math, "y", x, of(p, "r", shape), gamma, of(p, "beta", row));
    (void)layer_norm_backward(p, {epsilon}, f32_math, "dx", of(p, "dy", shape), norm.sum, gamma, norm.mean, norm.rstd,
                              of(p, "dr", shape));
  });
}

}  // namespace

void add_row_programs(OraclePrograms& all) {
  add_norms(all, {3, 5}, 1e-5);
  add_norms(all, {2, 3, 7}, 0.25);
  add_norms(all, {1, 33}, 1e-6);
  add_norms(all, {9, 64}, 1e-5);
  for (const Shape& shape : {Shape{2, 1}, Shape{7, 3}, Shape{2, 3, 5, 4}}) {
    for (const double momentum : {0.0, 0.1, 1.0}) {
      add_differentiated(all, "batch_norm " + shape.to_string() + " momentum=" + std::to_string(momentum),
                         [&](Program& p) -> OracleForward {
                           const Shape row{shape[-1]};
                           const ValueId x = of(p, "x", shape), gamma = of(p, "gamma", row), beta = of(p, "beta", row);
                           const BatchNormChannels channels{gamma, beta, of(p, "running_mean", row),
                                                            of(p, "running_var", row, Fill::positive(1))};
                           const BatchNorm attributes{momentum == 0.1 ? 1e-5 : 0.125, momentum};
                           return {{batch_norm_forward(p, attributes, f32_math, "y", x, channels).y}, {x, gamma, beta}};
                         });
      for (const bool residual : {false, true}) {
        add_differentiated(all,
                           "batch_norm_relu " + shape.to_string() + " momentum=" + std::to_string(momentum) +
                               (residual ? " residual" : ""),
                           [&](Program& p) -> OracleForward {
                             const Shape row{shape[-1]};
                             const ValueId x = of(p, "x", shape), gamma = of(p, "gamma", row),
                                           beta = of(p, "beta", row);
                             const BatchNormChannels channels{gamma, beta, of(p, "running_mean", row),
                                                              of(p, "running_var", row, Fill::positive(1))};
                             std::vector<ValueId> wanted{x, gamma, beta};
                             if (residual) wanted.push_back(of(p, "r", shape));
                             const auto r = residual ? std::optional(wanted.back()) : std::nullopt;
                             const BatchNorm attributes{momentum == 0.1 ? 1e-5 : 0.125, momentum};
                             return {{batch_norm_relu_forward(p, attributes, f32_math, "y", x, channels, r).y}, wanted};
                           });
      }
    }
  }
  for (const auto& [two, dr] : {std::pair{false, false}, std::pair{false, true}, std::pair{true, true}}) {
    add_program(all, "batch_norm_relu_backward dy2=" + std::to_string(two) + " dr=" + std::to_string(dr),
                [two = two, dr = dr](Program& p) {
                  const Shape shape{2, 3, 5, 4}, row{4};
                  const ValueId x = of(p, "x", shape), gamma = of(p, "gamma", row);
                  const BatchNormChannels channels{gamma, of(p, "beta", row), of(p, "running_mean", row),
                                                   of(p, "running_var", row, Fill::positive(1))};
                  const BatchNormForward y = batch_norm_relu_forward(p, {}, f32_math, "y", x, channels);
                  const auto dy2 = two ? std::optional(of(p, "dy2", shape)) : std::nullopt;
                  (void)batch_norm_relu_backward(p, {two, dr}, f32_math, "dx", {x, gamma, y.mean, y.rstd, y.y},
                                                 of(p, "dy", shape), dy2);
                });
  }
  add_differentiated(all, "cross_entropy", [](Program& p) -> OracleForward {
    const ValueId logits = of(p, "logits", {7, 5}, Fill::normal(4)), labels = tokens(p, "labels", 7, 5);
    (void)cross_entropy_forward_backward(p, f32_math, "both", logits, labels);
    return {{cross_entropy_forward(p, f32_math, "loss", logits, labels).loss}, {logits}, true};
  });
  add_differentiated(all, "cross_entropy of far logits", [](Program& p) -> OracleForward {
    const ValueId logits = of(p, "logits", {9, 31}, Fill::normal(4096));
    return {{cross_entropy_forward(p, f32_math, "loss", logits, tokens(p, "labels", 9, 31)).loss}, {logits}, true};
  });
  add_differentiated(all, "cross_entropy of one class", [](Program& p) -> OracleForward {
    const ValueId logits = of(p, "logits", {3, 1});
    return {{cross_entropy_forward(p, f32_math, "loss", logits, tokens(p, "labels", 3, 1)).loss}, {logits}, true};
  });
  add_differentiated(all, "cross_entropy, every term", [](Program& p) -> OracleForward {
    const ValueId logits = of(p, "logits", {9, 5}, Fill::normal(4)), labels = tokens(p, "labels", 9, 5);
    const CrossEntropy terms{.ignores = true, .ignore_index = 3, .label_smoothing = 0.2, .z_loss = 0.01};
    (void)cross_entropy_forward_backward(p, f32_math, "both", logits, labels, false, terms,
                                         of(p, "dloss", {1}, Fill::constant(32)));
    return {{cross_entropy_forward(p, f32_math, "loss", logits, labels, terms).loss}, {logits}};
  });
  add_differentiated(all, "cross_entropy of a given count", [](Program& p) -> OracleForward {
    const ValueId logits = of(p, "logits", {9, 5}, Fill::normal(4)), labels = tokens(p, "labels", 9, 5);
    const CrossEntropy terms{.ignores = true, .ignore_index = 3, .label_smoothing = 0.2, .z_loss = 0.01};
    const ValueId count = count_labels(p, {.ignore_index = 2, .parts = 3}, f32_math, "count", labels);
    (void)cross_entropy_forward_backward(p, f32_math, "both", logits, labels, false, terms,
                                         of(p, "dloss", {1}, Fill::constant(32)), count);
    (void)cross_entropy_combine(p, f32_math, "combined", of(p, "lses", {3, 9}), of(p, "scores", {3, 9}), labels, terms,
                                count);
    (void)count_labels(p, {.ignore_index = 4}, f32_math, "counted", labels);
    return {{cross_entropy_forward(p, f32_math, "loss", logits, labels, terms, count).loss}, {logits}};
  });
  const CrossEntropy every_term{.ignores = true, .ignore_index = 3, .label_smoothing = 0.2, .z_loss = 0.01};
  for (const auto& [first, count, terms] :
       {std::tuple{std::int64_t{0}, std::int64_t{7}, CrossEntropy{}}, {std::int64_t{5}, std::int64_t{8}, every_term}}) {
    add_program(
        all, "cross_entropy of two classes, from " + std::to_string(first) + " on",
        [first = first, count = count, terms = terms](Program& p) {
          const ValueId logits = of(p, "logits", {9, count}, Fill::normal(4));
          const ValueId labels = tokens(p, "labels", 9, count);
          TensorSpec columns = tensor("part", DType::f32, {9, 2}, Role::activation);
          columns.layout.strides = {count, 1};
          const ValueId part = p.part(logits, columns, first);
          CrossEntropy of_part = terms;
          of_part.first = first;
          of_part.classes = count;
          (void)cross_entropy_partial(p, f32_math, "partial", part, labels, of_part);
          const ValueId lse = cross_entropy_forward(p, f32_math, "loss", logits, labels, terms).lse;
          (void)cross_entropy_backward(p, f32_math, "d", part, labels, lse, false, of_part,
                                       of(p, "dloss", {1}, Fill::constant(32)));
          (void)cross_entropy_combine(p, f32_math, "combined", of(p, "lses", {3, 9}), of(p, "scores", {3, 9}), labels,
                                      terms);
          const TableRows rows{.first = first, .vocabulary = count};
          (void)embedding_forward(p, "y", of(p, "table", {2, 3}), labels, rows);
          (void)embedding_backward(p, f32_math, "dtable", of(p, "dy", {9, 3}), labels, 2, rows);
          (void)embedding_backward_add(p, f32_math, "added", of(p, "dz", {9, 3}), labels, of(p, "tied", {2, 3}), rows);
        });
  }
  add_program(all, "attention_merge", [](Program& p) {
    const auto part = [&](const std::string& name) {
      return AttentionForward{of(p, name + ".o", {2, 5, 3, 4}), of(p, name + ".lse", {2, 3, 5}, Fill::normal(4))};
    };
    attention_merge(p, f32_math, "merged", part("one"), part("other"));
  });
  add_differentiated(all, "embedding", [](Program& p) -> OracleForward {
    const ValueId table = of(p, "table", {11, 3}), ids = tokens(p, "tokens", 9, 11);
    const ValueId y = embedding_forward(p, "y", table, ids);
    (void)embedding_backward_add(p, f32_math, "added", y, ids, of(p, "tied", {11, 3}));
    return {{y}, {table}};
  });
  add_differentiated(all, "embedding, every token alike", [](Program& p) -> OracleForward {
    const ValueId table = of(p, "table", {2, 5});
    return {{embedding_forward(p, "y", table, tokens(p, "tokens", 6, 1))}, {table}};
  });
  add_program(all, "column_sum", [](Program& p) {
    (void)column_sum(p, f32_math, "two axes", of(p, "x", {9, 5}));
    (void)column_sum(p, f32_math, "four axes", of(p, "image", {2, 3, 4, 5}));
    (void)column_sum(p, f32_math, "a row", of(p, "row", {1, 7}));
    (void)column_sum(p, f32_math, "of shares", of(p, "several", {2, 3, 4, 5}),
                     p.reserve(tensor("sums", DType::f32, {6, 5}, Role::gradient)));
  });
}

namespace {

// Tails, zeros, infinities and NaN: compared element by element.
OracleProgram special_values() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values{
      -30,  -10, -5,     -1,    -1e-3,    -1e-10,    -1e-300,
      -0.0, 0.0, 1e-300, 1e-10, 1e-3,     1,         5,
      10,   30,  1e5,    -1e5,  infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
  OracleProgram one{"special values", {}};
  Program& p = one.program;
  const auto n = static_cast<std::int64_t>(values.size());
  const ValueId x = p.add(tensor("x", DType::f64, {n}, Role::input));
  const ValueId dy = p.add(tensor("dy", DType::f64, {n}, Role::input, Fill::constant(1)));
  one.given[x] = values;
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    const std::string name = form == GeluForm::erf ? "gelu_erf" : "gelu";
    (void)gelu_forward(p, {form}, f64_math, name, x);
    (void)gelu_backward(p, {form}, f64_math, name + ".backward", x, dy);
  }
  (void)relu_forward(p, f64_math, "relu", x);
  (void)relu_backward(p, f64_math, "relu.backward", x, dy);
  (void)silu_forward(p, f64_math, "silu", x);
  (void)silu_backward(p, f64_math, "silu.backward", x, dy);
  (void)swiglu_forward(p, f64_math, "swiglu", x, dy);
  (void)scale(p, 0.0, f64_math, "scale", x);
  (void)add(p, f64_math, "add", x, x);
  return one;
}

}  // namespace

void add_element_programs(OraclePrograms& all) {
  const Fill fill = Fill::pointwise();
  const Shape shape{13, 7};
  add_differentiated(all, "pointwise", [&](Program& p) -> OracleForward {
    const ValueId x = of(p, "x", shape, fill), z = of(p, "z", shape, fill);
    (void)triad(p, -3.5, f32_math, "triad", x, z);  // has no derivative
    (void)triad(p, 3.0, f32_math, "triad3", x, z);
    return {
        {scale(p, 0.1, f32_math, "scale", x), scale(p, -2.0, f32_math, "minus two", z), add(p, f32_math, "add", x, z),
         cast(p, DType::bf16, "cast", x), gelu_forward(p, {GeluForm::tanh}, f32_math, "gelu", x),
         gelu_forward(p, {GeluForm::erf}, f32_math, "gelu_erf", x), relu_forward(p, f32_math, "relu", z),
         silu_forward(p, f32_math, "silu", z), swiglu_forward(p, f32_math, "swiglu", x, z)},
        {x, z}};
  });
  add_differentiated(all, "repeated rows", [&](Program& p) -> OracleForward {
    const ValueId x = of(p, "x", shape, fill), row = of(p, "row", {1, 7}, fill), shift = of(p, "shift", {1, 7}, fill);
    const ValueId repeated = p.reserve(tensor("repeated", DType::f32, {2, 3, 7}, Role::activation));
    const ValueId two = of(p, "two", {2, 7}, fill);
    repeat_rows_into(p, f32_math, "repeat", two, repeated);
    return {{multiply(p, f32_math, "product", x, row), multiply(p, f32_math, "square", x, x),
             modulate_forward(p, f32_math, "modulated", x, row, shift),
             modulate_forward(p, f32_math, "by element", x, x, x), repeated},
            {x, row, shift, two}};
  });
  all.push_back(special_values());
  for (const double p : {0.1, 0.6}) {
    add_differentiated(all, "dropout " + std::to_string(p), [&](Program& program) -> OracleForward {
      const ValueId x = of(program, "x", {5, 9}, Fill::normal(1.0));
      const auto words = [&](const char* name, std::int64_t low) {
        return program.add(tensor(name, DType::i32, {2}, Role::scalar, Fill::integers(low, 1000000)));
      };
      return {{dropout(program, {p}, f32_math, "y", x, {words("seed", -1000000), words("offset", -9)})}, {x}};
    });
  }
  for (const DType to : {DType::bf16, DType::f16}) {
    add_program(
        all, "cast to " + std::string(name(to)),
        [&](Program& p) {
          for (const double scale : {1.0, 0x1p-16, 0x1p-24, 0x1p14}) {
            (void)cast(p, to, "y" + std::to_string(scale),
                       of(p, "x" + std::to_string(scale), {64, 65}, Fill::normal(scale)));
          }
        },
        true);
  }
  add_differentiated(all, "moves", [&](Program& p) -> OracleForward {
    const ValueId x = of(p, "x", {2, 3, 4, 5}), y = of(p, "y", {6, 5});
    return {{copy(p, "copy", x), transpose(p, {1, 0}, "transpose", y), transpose(p, {2, 0, 3, 1}, "permute", x),
             reorder(p, Layout::ordered({2, 3, 4, 5}, std::array{0, 2, 3, 1}), "reorder", x)},
            {x, y}};
  });
}

namespace {

std::optional<ValueId> flag(Program& p, std::optional<double> value) {
  return value ? std::optional(of(p, "found_inf", {1}, Fill::constant(*value))) : std::nullopt;
}

}  // namespace

void add_optimizer_programs(OraclePrograms& all) {
  for (const double limit : {1.0, 1e3}) {  // one that clips, and one that does not
    add_program(all, "clip " + std::to_string(limit), [&](Program& p) {
      const std::array gradients{of(p, "g1", {3, 5}), of(p, "g2", {1}), of(p, "g3", {17})};
      const ValueId norm = gradient_norm(p, f32_math, "norm", gradients);
      (void)clip(p, {limit}, f32_math, "clip", norm, gradients);
    });
  }
  const auto adamw_program = [&](const std::string& name, const AdamW& attributes, double step, double limit,
                                 std::optional<double> found = {}) {
    add_program(all, name, [&](Program& p) {
      const ValueId lr = of(p, "lr", {1}, Fill::constant(0x1p-10));
      const ValueId count = p.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(step)));
      std::vector<AdamWTensor> tensors;
      for (const Shape& shape : {Shape{5, 3}, Shape{17}, Shape{1}}) {
        const std::string number = std::to_string(tensors.size());
        AdamWTensor& t = tensors.emplace_back();
        t.weight = of(p, "w" + number, shape);
        t.gradient = of(p, "g" + number, shape, Fill::tiny_mix(1));
        t.m = of(p, "m" + number, shape, step == 1 ? Fill::constant(0) : Fill::normal(0.5));
        t.v = of(p, "v" + number, shape, step == 1 ? Fill::constant(0) : Fill::positive(0.25));
        if (attributes.copies) t.copy = p.add(tensor("copy" + number, DType::bf16, shape, Role::parameter));
      }
      if (limit > 0.0) {
        const ValueId norm = of(p, "norm", {1}, Fill::constant(4));
        clip_adamw(p, {attributes, limit}, f32_math, "clip_adamw", norm, lr, count, tensors, flag(p, found));
      } else {
        adamw(p, attributes, f32_math, "adamw", lr, count, tensors, flag(p, found));
      }
    });
  };
  for (const double limit : {0.0, 1.0, 8.0}) {
    const std::string what = limit > 0.0 ? "clip_adamw " + std::to_string(limit) : "adamw";
    adamw_program(what + ", first step", {}, 1, limit);
    adamw_program(what + ", copies",
                  {.beta1 = 0.8, .beta2 = 0.99, .epsilon = 0x1p-6, .weight_decay = 0.01, .copies = true}, 1000, limit);
    adamw_program(what + ", Adam", {.l2 = true}, 3, limit);
    for (const double found : {0.0, 1.0}) adamw_program(what + ", found " + std::to_string(found), {}, 2, limit, found);
  }
  const auto lion_program = [&](const std::string& name, const Lion& attributes, std::optional<double> found) {
    add_program(all, name, [&](Program& p) {
      SgdTensor t{of(p, "w", {17}), of(p, "g", {17}), of(p, "m", {17}), {}};
      if (attributes.copies) t.copy = p.add(tensor("copy", DType::bf16, {17}, Role::parameter));
      lion(p, attributes, f32_math, "lion", of(p, "lr", {1}, Fill::constant(0x1p-10)), std::array{t}, flag(p, found));
    });
  };
  lion_program("lion", {}, {});
  lion_program("lion, copies", {.beta1 = 0.95, .beta2 = 0.98, .weight_decay = 0.5, .copies = true}, 0.0);
  lion_program("lion, skipped", {.copies = true}, 1.0);
  add_program(all, "unscale", [&](Program& p) {
    const std::array gradients{of(p, "g1", {3, 5}), of(p, "g2", {17})};
    (void)unscale(p, f32_math, "unscale", of(p, "scale", {1}, Fill::constant(768)), gradients);
  });
  for (const double found : {0.0, 1.0}) {
    for (const int steps : {3, 4}) {
      const UpdateScale rule = found == 0.0 ? UpdateScale{.interval = 5} : UpdateScale{1.5, 0.75, 5};
      add_program(all, "update_scale " + std::to_string(steps) + ", found " + std::to_string(found), [&](Program& p) {
        const ValueId tracker = p.add(tensor("tracker", DType::i32, {1}, Role::scalar, Fill::constant(steps)));
        update_scale(p, steps == 3 ? UpdateScale{} : rule, "update", of(p, "scale", {1}, Fill::constant(768)), tracker,
                     *flag(p, found));
      });
    }
  }
}

void add_sgd_programs(OraclePrograms& all) {
  const auto add_step = [&](const Sgd& attributes, std::optional<double> found) {
    const std::string what = found ? ", found " + std::to_string(*found) : "";
    add_program(all, "sgd " + describe(attributes) + what, [&](Program& p) {
      std::vector<SgdTensor> tensors;
      for (const Shape& shape : {Shape{5, 3}, Shape{17}, Shape{1}}) {
        const std::string number = std::to_string(tensors.size());
        SgdTensor& t = tensors.emplace_back();
        t.weight = of(p, "w" + number, shape);
        t.gradient = of(p, "g" + number, shape);
        t.m = of(p, "m" + number, shape);
        if (attributes.copies) t.copy = p.add(tensor("copy" + number, DType::bf16, shape, Role::parameter));
      }
      sgd(p, attributes, f32_math, "sgd", of(p, "lr", {1}, Fill::constant(0x1p-10)), tensors, flag(p, found));
    });
  };
  for (const Sgd& attributes :
       {Sgd{}, Sgd{.momentum = 0.0, .weight_decay = 0.125}, Sgd{.momentum = 0.8, .nesterov = true},
        Sgd{.weight_decay = 1e-4, .nesterov = true, .copies = true}}) {
    add_step(attributes, {});
  }
  for (const double found : {0.0, 1.0}) add_step({.copies = true}, found);
}

void add_collective_programs(OraclePrograms& all) {
  const auto differentiated = [&](const std::string& name, int ranks, const Shape& shape, const auto& collective) {
    add_differentiated(all, name, [&](Program& p) -> OracleForward {
      const std::vector<ValueId> x = on_ranks(p, ranks, DType::f32, shape);
      return {collective(p, x), x};
    });
  };
  for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::maximum}) {
    for (const int ranks : {2, 3}) {
      const std::string text = " " + std::string(name(reduction)) + " x" + std::to_string(ranks);
      add_program(all, "all_reduce" + text, [&](Program& p) {
        (void)all_reduce(p, {ranks, reduction}, f32_math, "y", on_ranks(p, ranks, DType::f32, {5}));
        (void)all_reduce(p, {ranks, reduction}, f32_math, "updated", on_ranks(p, ranks, DType::f32, {7}, "z"), true);
      });
      add_program(all, "reduce_scatter" + text, [&](Program& p) {
        (void)reduce_scatter(p, {ranks, reduction}, f32_math, "y", on_ranks(p, ranks, DType::f32, {6}));
      });
      if (reduction == Reduction::maximum) continue;  // has no derivative
      differentiated("all_reduce, differentiated" + text, ranks, {5}, [&](Program& p, const auto& x) {
        return all_reduce(p, {ranks, reduction}, f32_math, "y", x);
      });
      if (reduction == Reduction::average) continue;  // of reduce_scatter only the sum has one
      differentiated("reduce_scatter, differentiated" + text, ranks, {6}, [&](Program& p, const auto& x) {
        return reduce_scatter(p, {ranks, reduction}, f32_math, "y", x);
      });
    }
  }
  differentiated("all_gather", 3, {2}, [](Program& p, const auto& x) { return all_gather(p, {3}, "y", x); });
  differentiated("all_to_all", 3, {6}, [](Program& p, const auto& x) {
    return all_to_all(p, {3, std::vector<std::int64_t>(9, 2)}, "y", x);
  });
  differentiated("all_to_all, uneven", 2, {4}, [](Program& p, const auto& x) {
    return all_to_all(p, {2, {4, 0, 1, 3}}, "y", x);
  });
  for (const int ranks : {2, 3}) {
    constexpr std::int64_t tokens = 7, h = 3;
    const std::int64_t experts = 2 * ranks;
    const auto sizes_of = [&](Program& p) {
      std::vector<ValueId> sizes;
      for (int rank = 0; rank < ranks; ++rank) {
        TensorSpec indices = tensor(name_on_rank("indices", rank, ranks), DType::i32, {tokens, 2}, Role::input,
                                    Fill::integers(0, experts));
        indices.placement = Placement::shard(0, rank, ranks);
        sizes.push_back(
            group_tokens(p, {.experts = experts}, name_on_rank("groups", rank, ranks), p.add(std::move(indices)))
                .sizes);
      }
      return sizes;
    };
    const std::string text = " x" + std::to_string(ranks);
    differentiated("dispatch_tokens" + text, ranks, {2 * tokens + 1, h},
                   [&](Program& p, const auto& x) { return dispatch_tokens(p, {ranks}, "y", x, sizes_of(p)).y; });
    differentiated("return_tokens" + text, ranks, {2 * tokens * ranks, h},
                   [&](Program& p, const auto& y) { return return_tokens(p, {ranks}, "x", y, sizes_of(p)); });
  }
  for (const int shift : {1, 2}) {
    const int ranks = 2 + shift;
    differentiated("send_recv " + std::to_string(shift), ranks, {4}, [&](Program& p, const auto& x) {
      return send_recv(p, {ranks, shift}, "y", x);
    });
  }
  for (const int ranks : {4, 5}) {
    differentiated("send_recv in pairs of " + std::to_string(ranks), ranks, {4}, [&](Program& p, const auto& x) {
      return send_recv(p, {ranks, 1, 2}, "y", x);
    });
  }
  for (const int root : {0, 2}) {
    add_program(all, "broadcast from " + std::to_string(root), [&](Program& p) {
      const int ranks = 3 + root;
      (void)broadcast(p, {ranks, root}, "y", on_ranks(p, ranks, DType::f32, {4})[static_cast<std::size_t>(root)]);
    });
  }
  add_program(all, "all_gather in place",
              [](Program& p) { (void)all_gather_in_place(p, {2}, "y", on_ranks(p, 2, DType::f32, {6})); });
}

}  // namespace gpubench::testing
