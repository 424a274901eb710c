// What column sums, embeddings and cross-entropy have to keep on every backend: sums over rows, over occurrences, over
// classes.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/tensor_checks.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

/// Rows, and what each has of elements, columns or classes.
struct Rows {
  std::int64_t rows, n;
  std::int64_t stride = 1;  ///< every `stride`th unit is judged
};

inline void expect_bounds_of_column_sums(const BackendContract& on, const std::vector<Rows>& sizes) {
  for (const DType dtype : on.types) {
    for (const auto& [rows, n, stride] : sizes) {
      Program program;
      const ValueId x = program.add(tensor("x", dtype, Shape{rows, n}, Role::gradient));
      const ValueId y = program.reserve(tensor("y", statistic_type(dtype), Shape{n}, Role::gradient));
      (void)column_sum(program, math_for(dtype), "op", x, y);
      EXPECT_EQ(on.judge(
                    program, [&](ProgramRun& run) { run.set_random(x, 1); }, stride),
                "")
          << name(dtype) << ", " << rows << " x " << n;
    }
  }
}

/// Sums of shares of the rows.
struct Shares {
  std::int64_t sums, rows, n;
};

/// From parts of wider rows, which packs fit or don't, to parts of wider rows.
inline void expect_bounds_of_sums_of_shares(const BackendContract& on, const std::vector<Shares>& sizes) {
  for (const DType dtype : on.types) {
    for (const auto& [sums, rows, n] : sizes) {
      for (const std::int64_t first : {8, 11}) {
        Program program;
        TensorSpec part = tensor("part", dtype, Shape{sums, rows, n}, Role::gradient);
        part.layout.strides = {rows * 80, 80, 1};
        const ValueId whole = program.add(tensor("whole", dtype, Shape{sums, rows, 80}, Role::gradient));
        TensorSpec sum = tensor("sum", dtype, Shape{sums, n}, Role::gradient);
        sum.layout.strides = {90, 1};
        const ValueId y = program.reserve(tensor("y", dtype, Shape{sums, 90}, Role::gradient));
        (void)column_sum(program, math_for(dtype), "op", program.part(whole, part, first), program.part(y, sum, 3));
        EXPECT_EQ(on.judge(program, [&](ProgramRun& run) { run.set_random(whole, 1); }), "")
            << name(dtype) << ", " << sums << " x " << rows << " x " << n << ", from " << first;
      }
    }
  }
}

inline void expect_bounds_of_one_signed_columns(const BackendContract& on, std::int64_t rows) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Program program;
    const ValueId x = program.add(tensor("x", dtype, Shape{rows, 17}, Role::gradient));
    (void)column_sum(program, Math{}, "op", x);
    const auto fill = [&](ProgramRun& run) {
      run.set_random(x, 1);
      std::vector<double> values = run.get(x);
      for (double& value : values) value = 1.0 + std::fabs(value);
      run.set(x, values);
    };
    EXPECT_EQ(on.judge(program, fill), "") << name(dtype);
  }
}

inline void expect_bounds_of_column_sums_of_a_part(const BackendContract& on) {
  for (const std::int64_t n : {11, 24}) {
    for (const std::int64_t first : {7, 8}) {
      Program program;
      const auto [whole, x] = part_of_rows(program, tensor("x", DType::bf16, {50, n}, Role::gradient), 64, first);
      (void)column_sum(program, Math{}, "op", x);
      EXPECT_EQ(on.judge(program, [&, id = whole](ProgramRun& run) { run.set_random(id, 1); }), "") << n << first;
    }
  }
}

inline void expect_rows_of_tokens_bit_for_bit(const BackendContract& on) {
  std::vector<DType> types = on.types;
  types.push_back(DType::u8);
  for (const DType dtype : types) {
    for (const std::int64_t h : {1, 77, 64}) {
      Program program;
      const ValueId table = program.add(tensor("table", dtype, Shape{101, h}, Role::parameter));
      const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{333}, Role::input));
      (void)embedding_forward(program, "op", table, tokens);
      const auto fill = [&](ProgramRun& run) {
        run.set_random(table, 1, 20.0);
        run.set(tokens, indices(333, 101, 2));
      };
      EXPECT_EQ(on.judge(program, fill), "") << name(dtype) << ", " << h;
    }
  }
}

/// embedding_backward, or embedding_backward_add to a table that is filled; returns what is to be set at random.
inline std::vector<ValueId> scatter(Program& program, ValueId dy, ValueId tokens, std::int64_t rows, bool adds,
                                    const TableRows& of_rank = {}) {
  const TensorSpec like = program.spec(dy);
  if (!adds) {
    (void)embedding_backward(program, math_for(like.dtype), "scatter", dy, tokens, rows, of_rank);
    return {dy};
  }
  const ValueId dtable = program.add(tensor("dtable", like.dtype, Shape{rows, like.shape[1]}, Role::gradient));
  (void)embedding_backward_add(program, math_for(like.dtype), "add", dy, tokens, dtable, of_rank);
  return {dy, dtable};
}

/// A rank that has 50 rows of the table looks up and sums their tokens; others' are 0.
inline void expect_bounds_of_the_rows_of_a_rank(const BackendContract& on, bool adds) {
  const TableRows rows{.first = 30, .vocabulary = 101};
  for (const DType dtype : on.types) {
    for (const std::int64_t h : {77, 64}) {
      Program program;
      const ValueId table = program.add(tensor("table", dtype, Shape{50, h}, Role::parameter));
      const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{500}, Role::input));
      const ValueId dy = program.add(tensor("dy", dtype, Shape{500, h}, Role::gradient));
      (void)embedding_forward(program, "op", table, tokens, rows);
      std::vector<ValueId> random = scatter(program, dy, tokens, 50, false, rows);
      if (adds) random = scatter(program, dy, tokens, 50, true, rows);
      const auto fill = [&](ProgramRun& run) {
        run.set_random(table, 1);
        for (const ValueId id : random) run.set_random(id, 1);
        std::vector<double> ids = indices(500, 101, 2);
        for (std::size_t i = 0; i < ids.size(); i += 5) ids[i] = 33;  // more often than a warp has lanes
        run.set(tokens, ids);
      };
      EXPECT_EQ(on.judge(program, fill), "") << name(dtype) << ", " << h;
    }
  }
}

inline void expect_nan_of_tokens_outside_the_table(const BackendContract& on) {
  for (const std::int64_t h : {3, 8}) {
    Program program;
    const ValueId table = program.add(tensor("table", DType::bf16, Shape{4, h}, Role::parameter));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{3}, Role::input));
    const ValueId y = embedding_forward(program, "op", table, tokens);
    ProgramRun run(on.backend, program);
    run.set_random(table, 1);
    run.set(tokens, std::vector<double>{3, 4, -1});

    run.run();

    expect_nan_where(run.get(y), [&](std::size_t i) { return i >= static_cast<std::size_t>(h); });
  }
}

inline void expect_no_gradient_of_tokens_outside_the_table(const BackendContract& on) {
  Program program;
  const ValueId dy = program.add(tensor("dy", DType::f32, Shape{3, 2}, Role::gradient));
  const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{3}, Role::input));
  const ValueId dtable = embedding_backward(program, Math{}, "op", dy, tokens, 2);
  ProgramRun run(on.backend, program);
  run.set(dy, std::vector<double>{1, 2, 3, 4, 5, 6});
  run.set(tokens, std::vector<double>{2, 1, -1});

  run.run();

  EXPECT_EQ(run.get(dtable), (std::vector<double>{0, 0, 3, 4}));
}

/// Token 0 is in every fifth place, 100 times: frequent. Some tokens occur a few times, some never (exactly 0, or as
/// the table was), token 7 exactly 32 times and 8 exactly 33.
inline void expect_bounds_of_rare_and_frequent_tokens(const BackendContract& on,
                                                      const std::vector<std::int64_t>& widths, bool adds) {
  for (const DType dtype : on.types) {
    for (const std::int64_t h : widths) {
      Program program;
      const ValueId dy = program.add(tensor("dy", dtype, Shape{500, h}, Role::gradient));
      const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{500}, Role::input));
      const std::vector<ValueId> random = scatter(program, dy, tokens, 211, adds);
      std::vector<double> ids = indices(500, 170, 2);
      for (double& id : ids) id += 10;
      for (std::size_t i = 0; i < ids.size(); i += 5) ids[i] = 0;
      for (std::size_t i = 0; i < 32; ++i) ids[15 * i + 1] = 7;
      for (std::size_t i = 0; i < 33; ++i) ids[15 * i + 2] = 8;
      const auto fill = [&](ProgramRun& run) {
        for (const ValueId id : random) run.set_random(id, static_cast<std::uint64_t>(id.index));
        run.set(tokens, ids);
      };
      EXPECT_EQ(on.judge(program, fill), "") << name(dtype) << ", " << h;
      ProgramRun run(on.backend, program);
      fill(run);
      const std::size_t untouched = 180 * static_cast<std::size_t>(h);
      std::vector<double> before(211 * static_cast<std::size_t>(h));
      if (adds) before = run.get(random[1]);
      run.run();
      const std::vector<double> after = run.get(program.op(0).outputs[0]);
      for (std::size_t i = untouched; i < after.size(); ++i) ASSERT_EQ(after[i], before[i]) << i;
    }
  }
}

/// How loss and gradient are computed: one op after the other, or both in one; dlogits in the memory of the logits.
struct LossForm {
  bool fused, in_place;
};
inline constexpr LossForm loss_forms[] = {{false, false}, {false, true}, {true, false}, {true, true}};

inline std::string told(const LossForm& form) {
  return std::string(form.fused ? "fused" : "apart") + (form.in_place ? ", in place" : "");
}

/// Loss and gradient; with `first`, of logits that are that column and those after it of wider rows.
struct LossProgram {
  Program program;
  ValueId filled, logits, labels, loss, lse, dlogits;

  LossProgram(const LossForm& form, DType dtype, std::int64_t rows, std::int64_t classes,
              std::optional<std::int64_t> first = {}, const CrossEntropy& attributes = {}) {
    const TensorSpec spec = tensor("logits", dtype, Shape{rows, classes}, Role::activation);
    const PartOfRows part = first ? part_of_rows(program, spec, classes + 99, *first) : PartOfRows{};
    logits = first ? part.part : program.add(spec);
    filled = first ? part.whole : logits;
    labels = program.add(tensor("labels", DType::i32, Shape{rows}, Role::input));
    const Math math = math_for(dtype);
    if (form.fused) {
      const auto out = cross_entropy_forward_backward(program, math, "op", logits, labels, form.in_place, attributes);
      loss = out.loss;
      lse = out.lse;
      dlogits = out.dlogits;
    } else {
      const CrossEntropyForward out = cross_entropy_forward(program, math, "forward", logits, labels, attributes);
      loss = out.loss;
      lse = out.lse;
      dlogits = cross_entropy_backward(program, math, "backward", logits, labels, lse, form.in_place, attributes);
    }
  }
};

inline void expect_bounds_of_cross_entropy(const BackendContract& on, bool fused, const std::vector<Rows>& sizes,
                                           const std::vector<double>& scales) {
  for (const DType dtype : on.types) {
    for (const bool in_place : {false, true}) {
      for (const auto& [rows, classes, stride] : sizes) {
        const LossProgram p({fused, in_place}, dtype, rows, classes);
        for (const double scale : scales) {
          const auto fill = [&, row_count = rows, class_count = classes](ProgramRun& run) {
            run.set_random(p.logits, 1, scale);
            run.set(p.labels, indices(row_count, class_count, 2));
          };
          EXPECT_EQ(on.judge(p.program, fill, stride), "")
              << name(dtype) << ", " << rows << " x " << classes << ", scale " << scale << ", in place " << in_place;
        }
      }
    }
  }
}

/// Logits and gradients that begin at different distances from a boundary of 16 bytes, so that no pack fits both.
inline void expect_bounds_of_cross_entropy_of_parts(const BackendContract& on) {
  for (const LossForm& form : {LossForm{false, false}, LossForm{true, false}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const std::int64_t classes : {201, 601, 1501}) {
        const LossProgram p(form, dtype, 6, classes, 5);
        const auto fill = [&](ProgramRun& run) {
          run.set_random(p.filled, 1);
          run.set(p.labels, std::vector<double>{0, static_cast<double>(classes) - 1.0, 3, 77, 1, 200});
        };
        EXPECT_EQ(on.judge(p.program, fill), "") << told(form) << ", " << name(dtype) << ", " << classes;
      }
    }
  }
}

/// Labels before the first boundary of 16 bytes, in the first and the last pack, and behind it: each has another owner.
inline void expect_bounds_of_labels_at_the_ends(const BackendContract& on) {
  for (const auto& [rows, classes, stride] : {Rows{6, 1021}, Rows{6, 3005}, Rows{6, 32771, 3}}) {
    const LossProgram p({true, true}, DType::bf16, rows, classes);
    const auto last = static_cast<double>(classes) - 1.0;
    const auto fill = [&](ProgramRun& run) {
      run.set_random(p.logits, 1, 3.0);
      run.set(p.labels, std::vector<double>{0, last, 1, last - 1, 8, last - 8});
    };
    EXPECT_EQ(on.judge(p.program, fill, stride), "") << classes;
  }
}

/// Row 0: all classes but the first and the last are masked; those have p = 1/4 and 3/4, as they are ln 3 apart. Row 1:
/// two logits of a thousand, whose exponentials overflow; p = 1/2. All others are -1000.
inline void expect_masked_and_large_logits_to_be_exact(const BackendContract& on) {
  for (const LossForm& form : loss_forms) {
    for (const std::int64_t classes : {3, 2000, 17000}) {
      const LossProgram p(form, DType::f32, 2, classes);
      ProgramRun run(on.backend, p.program);
      const auto n = static_cast<std::size_t>(classes);
      std::vector<double> values(2 * n, -INFINITY);
      values[0] = 0.0;
      values[n - 1] = std::log(3.0);
      std::fill_n(values.begin() + classes, classes, -1000.0);
      values[n] = values[2 * n - 1] = 1000.0;
      run.set(p.logits, values);
      run.set(p.labels, std::vector<double>{0.0, static_cast<double>(classes) - 1.0});

      run.run();

      std::vector<double> want(2 * n, 0.0);
      want[0] = -0.375;
      want[n - 1] = 0.375;
      want[n] = 0.25;
      want[2 * n - 1] = -0.25;
      const std::vector<double> got = run.get(p.dlogits), lse = run.get(p.lse);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double bound = want[i] == 0.0 ? 0.0 : i < n ? 1e-6 : 1e-4;  // a log-sum-exp near 1000 is rounded by 3e-5
        ASSERT_NEAR(got[i], want[i], bound) << told(form) << ", " << i;
      }
      EXPECT_NEAR(lse[0], std::log(4.0), 1e-6);
      EXPECT_NEAR(lse[1], 1000.0 + std::log(2.0), 1e-4);
      EXPECT_NEAR(run.get(p.loss)[0], 0.5 * (std::log(4.0) + std::log(2.0)), 1e-4);
    }
  }
}

/// A NaN in row 2, or a label of row 1 that is no class.
inline void expect_nan_and_wrong_labels_to_spoil_their_rows(const BackendContract& on) {
  for (const LossForm& form : loss_forms) {
    for (const std::int64_t classes : {300, 3000, 33000}) {
      for (const bool wrong_label : {false, true}) {
        const LossProgram p(form, DType::bf16, 4, classes);
        const auto n = static_cast<std::size_t>(classes);
        ProgramRun run(on.backend, p.program);
        run.set_random(p.logits, 1);
        if (!wrong_label) spoil(run, p.logits, 2 * n + 17);
        run.set(p.labels, std::vector<double>{0.0, wrong_label ? static_cast<double>(classes) : 1.0, 2.0, 3.0});

        run.run();

        EXPECT_TRUE(std::isnan(run.get(p.loss)[0]));
        expect_nan_where(run.get(p.lse), [&](std::size_t row) { return row == 2 && !wrong_label; });
        expect_nan_where(run.get(p.dlogits), [&](std::size_t i) { return i / n == (wrong_label ? 1 : 2); });
      }
    }
  }
}

/// Nothing to learn: a mean over no rows, and no gradient at all.
inline void expect_nothing_of_ignored_rows(const BackendContract& on) {
  for (const LossForm& form : loss_forms) {
    const LossProgram p(form, DType::f32, 2, 300, {}, {.ignores = true});
    ProgramRun run(on.backend, p.program);
    run.set_random(p.logits, 1);
    run.set(p.labels, std::vector<double>{-100, -100});

    run.run();

    EXPECT_TRUE(std::isnan(run.get(p.loss)[0]));
    EXPECT_EQ(run.get(p.dlogits), std::vector<double>(600, 0.0));
  }
}

struct CrossEntropyProgram {
  Program program;
  ValueId logits, labels;
  std::vector<ValueId> lse, dloss;  ///< one, or none
  std::int64_t rows, classes;       ///< of the logits
  std::string what;
  std::vector<ValueId> scores{};  ///< one, or none: the logits are then the log-sum-exps of parts, [classes, rows]
  std::vector<ValueId> count{};   ///< one, or none
};

/// Loss, gradient, and both at once, of each of these: smoothed labels, a z-loss, rows that are ignored, the mean over
/// a number of them that is given, all of it; and what the second of three parts of the classes tells, its gradient,
/// and the loss made of what as many parts as there are classes tell. Gradients are of a scaled loss, by turns in place
/// of the logits.
inline std::vector<CrossEntropyProgram> cross_entropy_programs(DType dtype, std::int64_t rows, std::int64_t classes) {
  const std::array<CrossEntropy, 5> terms{
      CrossEntropy{.label_smoothing = 0.1}, CrossEntropy{.z_loss = 1e-2}, CrossEntropy{.ignores = true},
      CrossEntropy{.ignores = true, .given_count = true},
      CrossEntropy{.ignores = true, .ignore_index = -7, .label_smoothing = 0.2, .z_loss = 1e-4, .given_count = true}};
  const Math math = math_for(dtype);
  std::vector<CrossEntropyProgram> all;
  for (const CrossEntropy& attributes : terms) {
    for (const char* op : {"forward", "backward", "both", "partial", "backward of a part", "combine"}) {
      CrossEntropyProgram p{{}, {}, {}, {}, {}, rows, classes, std::string(op) + ": " + describe(attributes)};
      const bool in_place = all.size() % 2 == 0;
      const DType wide = statistic_type(dtype);
      p.labels = p.program.add(tensor("labels", DType::i32, Shape{rows}, Role::input));
      std::optional<ValueId> count;
      if (attributes.given_count && !p.what.starts_with("partial")) {
        p.count = {p.program.add(tensor("count", wide, Shape{1}, Role::scalar))};
        count = p.count[0];
      }
      if (p.what.starts_with("combine")) {
        p.logits = p.program.add(tensor("lses", wide, Shape{classes, rows}, Role::statistic));
        p.scores = {p.program.add(tensor("scores", wide, Shape{classes, rows}, Role::statistic))};
        (void)cross_entropy_combine(p.program, math, "op", p.logits, p.scores[0], p.labels, attributes, count);
        all.push_back(std::move(p));
        continue;
      }
      p.logits = p.program.add(tensor("logits", dtype, Shape{rows, classes}, Role::activation));
      CrossEntropy of_part = attributes;
      of_part.first = classes;
      of_part.classes = 3 * classes;
      if (p.what.starts_with("partial")) {
        (void)cross_entropy_partial(p.program, math, "op", p.logits, p.labels, of_part);
        all.push_back(std::move(p));
        continue;
      }
      if (p.what.starts_with("forward")) {
        (void)cross_entropy_forward(p.program, math, "op", p.logits, p.labels, attributes, count);
        all.push_back(std::move(p));
        continue;
      }
      p.dloss = {p.program.add(tensor("dloss", wide, Shape{1}, Role::scalar))};
      if (p.what.starts_with("both")) {
        (void)cross_entropy_forward_backward(p.program, math, "op", p.logits, p.labels, in_place, attributes,
                                             p.dloss[0], count);
      } else {
        p.lse = {p.program.add(tensor("lse", wide, Shape{rows}, Role::statistic))};
        (void)cross_entropy_backward(p.program, math, "op", p.logits, p.labels, p.lse[0], in_place,
                                     p.what.starts_with("backward of a part") ? of_part : attributes, p.dloss[0],
                                     count);
      }
      all.push_back(std::move(p));
    }
  }
  return all;
}

/// Every third row is ignored where rows may be.
inline void fill(ProgramRun& run, const CrossEntropyProgram& p) {
  run.set_random(p.logits, 1, 3.0);
  for (const ValueId scores : p.scores) run.set_random(scores, 2, 3.0);
  const auto& attributes = p.program.op(0).attributes.as<CrossEntropy>();
  std::vector<double> labels = indices(p.rows, attributes.all_classes(p.classes), 2);
  if (attributes.ignores) {
    for (std::size_t row = 1; row < labels.size(); row += 3) labels[row] = attributes.ignore_index;
  }
  run.set(p.labels, labels);
  for (const ValueId count : p.count) run.set(count, std::vector<double>{0.375 * static_cast<double>(p.rows)});
  for (const ValueId dloss : p.dloss) run.set(dloss, std::vector<double>{1000.0});
  if (p.lse.empty()) return;
  const std::vector<double> logits = run.get(p.logits);
  std::vector<double> sums(labels.size());
  for (std::size_t i = 0; i < logits.size(); ++i) sums[i / static_cast<std::size_t>(p.classes)] += std::exp(logits[i]);
  for (double& sum : sums) sum = std::log(sum);
  run.set(p.lse[0], sums);
}

/// Labels of which every third does not count.
struct CountedLabels {
  Program program;
  ValueId labels;

  CountedLabels(std::int64_t rows, int parts) {
    labels = program.add(tensor("labels", DType::i32, Shape{rows}, Role::input));
    (void)count_labels(program, {.ignore_index = -7, .parts = parts}, Math{}, "op", labels);
  }
  void fill(ProgramRun& run) const {
    std::vector<double> values(static_cast<std::size_t>(run.program().spec(labels).shape.elements()));
    for (std::size_t row = 0; row < values.size(); ++row) values[row] = row % 3 == 1 ? -7.0 : static_cast<double>(row);
    run.set(labels, values);
  }
};

inline void expect_bounds_of_every_term(const BackendContract& on, const std::vector<Rows>& sizes) {
  for (const Rows& size : sizes)
    expect_bounds_in_every_type(on, [&](DType dtype) { return cross_entropy_programs(dtype, size.rows, size.n); });
}

inline void expect_labels_to_be_counted(const BackendContract& on) {
  for (const std::int64_t rows : {1, 2, 77, 5000}) {
    for (const int parts : {1, 3}) {
      const CountedLabels counted(rows, parts);
      EXPECT_EQ(on.judge(counted.program, [&](ProgramRun& run) { counted.fill(run); }), "") << rows << " in " << parts;
    }
  }
}

}  // namespace gpubench::testing
