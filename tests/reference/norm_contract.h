// What layer normalization, root mean square normalization, a residual connection with its norm, and batch
// normalization have to keep on every backend.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/batch_norm.h"
#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/tensor_checks.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

/// Forward and backward, but for residual_forward.
enum class NormKind { layer, rms, residual_forward, residual };

struct NormTypes {
  DType data, parameter;
};

struct NormSize {
  std::int64_t rows, n;
  std::int64_t stride = 1;  ///< every `stride`th unit is judged
};

/// A norm over rows, and its gradient from the statistics that it leaves.
struct NormProgram {
  NormKind kind;
  Program program;
  std::vector<ValueId> filled;  ///< at random
  ValueId x, gamma, y, rstd;
  std::optional<ValueId> r, beta, mean, sum;

  /// With `first`, what is read row by row (of a residual connection r and its gradient, else x) is that column and
  /// those after it of wider rows.
  NormProgram(NormKind norm, const NormTypes& types, std::int64_t rows, std::int64_t n,
              std::optional<std::int64_t> first = {})
      : kind(norm) {
    const Math math = math_for(types.data);
    const bool residual = kind == NormKind::residual || kind == NormKind::residual_forward;
    const auto add = [&](const char* name, DType dtype, const Shape& shape, bool is_part) {
      const TensorSpec spec = tensor(name, dtype, shape, Role::activation);
      if (!is_part) return filled.emplace_back(program.add(spec));
      const PartOfRows part = part_of_rows(program, spec, n + 136, *first);
      filled.push_back(part.whole);
      return part.part;
    };
    const auto data = [&](const char* name, bool is_part) {
      return add(name, types.data, {rows, n}, is_part && first);
    };
    x = data("x", !residual);
    gamma = add("gamma", types.parameter, {n}, false);
    const ValueId dy = data("dy", false);
    if (kind == NormKind::rms) {
      const RmsNormForward out = rms_norm_forward(program, {}, math, "forward", x, gamma);
      y = out.y;
      rstd = out.rstd;
      (void)rms_norm_backward(program, {}, math, "backward", dy, x, gamma, rstd);
      return;
    }
    beta = add("beta", types.parameter, {n}, false);
    std::optional<ValueId> dr;
    if (residual) {
      r = data("r", true);
      const ResidualNormForward out = residual_norm_forward(program, {}, math, "forward", x, *r, gamma, *beta);
      sum = out.sum;
      y = out.y;
      mean = out.mean;
      rstd = out.rstd;
      if (kind == NormKind::residual_forward) return;
      dr = data("dr", true);
    } else {
      const LayerNormForward out = layer_norm_forward(program, {}, math, "forward", x, gamma, *beta);
      y = out.y;
      mean = out.mean;
      rstd = out.rstd;
    }
    (void)layer_norm_backward(program, {}, math, "backward", dy, sum.value_or(x), gamma, *mean, rstd, dr);
  }
};

/// Rows of x whose mean, over standard deviation, and standard deviation are the hard ones: variance 1, 100 epsilon,
/// epsilon, 0; mean 0, 1 and 16 deviations. r leaves most of their sums as hard; x and r cancel in every fifth row, and
/// r is of size 1 in the row before that.
inline void fill(ProgramRun& run, const NormProgram& p) {
  for (const ValueId id : p.filled) run.set_random(id, static_cast<std::uint64_t>(id.index));
  constexpr double deviations[] = {1.0, 0.0316, 0.00316, 0.0};
  constexpr double means[] = {0.0, 1.0, 16.0};
  const auto n = static_cast<std::size_t>(p.program.spec(p.x).shape[-1]);
  std::vector<double> values = run.get(p.x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double deviation = deviations[i / n % 4];
    values[i] = means[i / n % 3] * (deviation > 0.0 ? deviation : 0.7) + deviation * values[i];
  }
  run.set(p.x, values);
  if (!p.r) return;
  const std::vector<double> x = run.get(p.x);
  values = run.get(*p.r);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t turn = i / n % 5;
    values[i] = turn == 4 ? -x[i] : turn == 3 ? values[i] : 0.001 * values[i];
  }
  run.set(*p.r, values);
}

inline void expect_bounds_of_hard_rows(const BackendContract& on, NormKind kind, const std::vector<NormTypes>& all,
                                       std::vector<NormSize> (*sizes_of)(const NormTypes&)) {
  for (const NormTypes& types : all) {
    for (const auto& [rows, n, stride] : sizes_of(types)) {
      const NormProgram p(kind, types, rows, n);
      EXPECT_EQ(on.judge(
                    p.program, [&](ProgramRun& run) { fill(run, p); }, stride),
                "")
          << name(types.data) << ", " << name(types.parameter) << ", " << rows << " x " << n;
    }
  }
}

/// Rows that begin where packs fit, and where they don't.
inline void expect_bounds_of_parts_of_rows(const BackendContract& on, const std::vector<NormKind>& kinds) {
  for (const NormKind kind : kinds) {
    for (const std::int64_t first : {8, 3}) {
      const NormProgram p(kind, {DType::bf16, DType::f32}, 9, 64, first);
      EXPECT_EQ(on.judge(p.program, [&](ProgramRun& run) { fill(run, p); }), "") << "from column " << first;
    }
  }
}

inline void expect_nan_to_stay_in_its_row(const BackendContract& on, const std::vector<NormKind>& kinds) {
  for (const NormKind kind : kinds) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const std::int64_t n : {40, 500, 1500}) {
        const NormProgram p(kind, {dtype, DType::f32}, 3, n);
        const auto width = static_cast<std::size_t>(n);
        ProgramRun run(on.backend, p.program);
        fill(run, p);
        spoil(run, p.r.value_or(p.x), width + 5);

        run.run();

        expect_nan_where(run.get(p.y), [&](std::size_t i) { return i / width == 1; });
        expect_nan_where(run.get(p.rstd), [&](std::size_t row) { return row == 1; });
        if (p.sum) expect_nan_where(run.get(*p.sum), [&](std::size_t i) { return i == width + 5; });
      }
    }
  }
}

/// A constant row has variance 0: rstd = 1 / sqrt(1e-5) = 316.2278, y = beta.
inline void expect_beta_of_a_constant_row(const BackendContract& on) {
  const NormProgram p(NormKind::layer, {DType::f32, DType::f32}, 2, 768);
  ProgramRun run(on.backend, p.program);
  fill(run, p);
  run.set(p.x, std::vector<double>(2 * 768, 0.5));

  run.run();

  const std::vector<double> y = run.get(p.y), beta = run.get(*p.beta);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], beta[i % 768]);
  EXPECT_NEAR(run.get(p.rstd)[1], 316.227766, 1e-4);
  EXPECT_EQ(run.get(*p.mean)[1], 0.5);
}

/// A residual connection with its norm gives the sum of add bit for bit, and its norm up to rounding.
inline void expect_residual_norm_of_add_and_norm(const BackendContract& on) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const NormTypes types{dtype, DType::f32};
    const NormProgram p(NormKind::residual_forward, types, 33, 771), norm(NormKind::layer, types, 33, 771);
    Program two;
    const ValueId x = two.add(p.program.spec(p.x)), r = two.add(p.program.spec(*p.r));
    const ValueId sum = add(two, Math{}, "sum", x, r);
    ProgramRun fused(on.backend, p.program), added(on.backend, two), normed(on.backend, norm.program);
    fill(fused, p);
    fused.run();
    added.set(x, fused.get(p.x));
    added.set(r, fused.get(*p.r));
    added.run();
    normed.set(norm.x, added.get(sum));
    normed.set(norm.gamma, fused.get(p.gamma));
    normed.set(*norm.beta, fused.get(*p.beta));
    normed.run();

    EXPECT_EQ(fused.bytes_of(*p.sum), added.bytes_of(sum)) << name(dtype);
    const std::vector<double> got = fused.get(p.rstd), want = normed.get(norm.rstd);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * want[i]) << name(dtype) << i;
  }
}

struct BatchNormProgram {
  std::string what;
  Program program;
  std::vector<ValueId> data, of_channels;
};

/// The ops of batch normalization in one type, on rows that fill groups, parts and tiles or don't, and channels that
/// fill packs or don't.
inline std::vector<BatchNormProgram> batch_norm_programs(DType dtype) {
  const Math math = math_for(dtype);
  const DType wide = statistic_type(dtype);
  std::vector<BatchNormProgram> all;
  for (const Shape& shape : {Shape{2, 1}, Shape{3, 5}, Shape{2, 9, 7, 24}, Shape{1, 6, 50, 264}, Shape{515, 8},
                             Shape{4, 5, 5, 3}, Shape{33, 520}}) {
    for (const std::string op :
         {"forward ", "backward ", "forward with relu ", "forward with residual and relu ", "backward with relu ",
          "backward with relu and dr ", "backward with relu, dr and dy2 "}) {
      const bool backward = op.starts_with("backward");
      BatchNormProgram& one = all.emplace_back();
      one.what = op + std::string(name(dtype)) + shape.to_string();
      const auto data = [&](const char* what) {
        return one.data.emplace_back(one.program.add(tensor(what, dtype, shape, Role::input)));
      };
      const auto of_channels = [&](const char* what) {
        return one.of_channels.emplace_back(one.program.add(tensor(what, wide, {shape[-1]}, Role::state)));
      };
      const ValueId x = data("x"), gamma = of_channels("gamma");
      if (backward) {
        const ValueId dy = data("dy"), mean = of_channels("mean");
        const ValueId rstd = of_channels("rstd");
        if (op == "backward ") {
          (void)batch_norm_backward(one.program, math, "back", dy, x, gamma, mean, rstd);
        } else {
          const bool dr = op.find("dr") != op.npos;
          const auto dy2 = op.find("dy2") != op.npos ? std::optional(data("dy2")) : std::nullopt;
          (void)batch_norm_relu_backward(one.program, {dy2.has_value(), dr}, math, "back",
                                         {x, gamma, mean, rstd, data("y")}, dy, dy2);
        }
      } else {
        const ValueId beta = of_channels("beta"), running_mean = of_channels("running_mean");
        const BatchNormChannels channels{gamma, beta, running_mean, of_channels("running_var")};
        const BatchNorm norm{.momentum = 0.125};
        if (op == "forward ") {
          (void)batch_norm_forward(one.program, norm, math, "norm", x, channels);
        } else {
          const auto r = op == "forward with relu " ? std::nullopt : std::optional(data("r"));
          (void)batch_norm_relu_forward(one.program, norm, math, "norm", x, channels, r);
        }
      }
    }
  }
  return all;
}

/// Data of which neighbouring channels have means from 0 to 12 and deviations from 1 to 1/8, of y, whose sign counts,
/// a mean of 0; a row of zeros first.
inline void fill(ProgramRun& run, const BatchNormProgram& p) {
  std::uint32_t state = 7;
  const auto next = [&state] {
    state = state * 1664525U + 1013904223U;
    return static_cast<double>(state >> 8U) * 0x1p-23 - 1.0;
  };
  for (const ValueId id : p.data) {
    const Shape& shape = run.program().spec(id).shape;
    const double mean = run.program().spec(id).name == "y" ? 0.0 : 4.0;
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    const auto channels = static_cast<std::size_t>(shape[-1]);
    for (std::size_t i = channels; i < values.size(); ++i) {
      const std::size_t channel = i % channels;
      values[i] =
          next() / static_cast<double>(std::size_t{1} << (channel % 4)) + mean * static_cast<double>(channel % 4);
    }
    run.set(id, values);
  }
  for (const ValueId id : p.of_channels) {
    std::vector<double> values(static_cast<std::size_t>(run.program().spec(id).shape.elements()));
    for (double& value : values) value = 1.0 + next() / 2.0;
    run.set(id, values);
  }
}

}  // namespace gpubench::testing
