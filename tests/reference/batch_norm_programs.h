// Programs of batch normalization, for the tests of every backend: one op each, on rows that fill groups, parts and
// tiles or don't, and channels that fill packs or don't.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/batch_norm.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

struct BatchNormProgram {
  std::string what;
  Program program;
  std::vector<ValueId> data, of_channels;
};

/// The ops of every shape in one type.
inline std::vector<BatchNormProgram> batch_norm_programs(DType dtype) {
  const Math math = dtype == DType::f64 ? Math{.accumulate = DType::f64} : Math{};
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
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
