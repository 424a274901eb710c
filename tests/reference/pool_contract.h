// What pooling has to keep on every backend: on windows that overlap, leave gaps or reach into the padding, and
// channels that fill packs or don't.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/pool.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

struct PoolProgram {
  std::string what;
  Program program;
  ValueId data;                    ///< x, or dy
  std::optional<ValueId> index{};  ///< that max_pool_backward reads
  std::int64_t window = 1;         ///< elements in a window
};

struct PoolShape {
  Shape x;
  Pool pool;
};

inline std::vector<PoolShape> pool_shapes() {
  return {{{2, 7, 6, 5}, {.window_h = 3, .window_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}},
          {{1, 8, 9, 64}, {.window_h = 3, .window_w = 2, .pad_w = 1, .counts_padding = true}},
          {{2, 9, 5, 24}, {.window_h = 2, .window_w = 1, .stride_h = 3, .stride_w = 2}},
          {{3, 5, 5, 264}, {.window_h = 5, .window_w = 5}},
          {{1, 1, 1, 1}, {}}};
}

/// Every pooling op of every shape in one type.
inline std::vector<PoolProgram> pool_programs(DType dtype) {
  const Math math = math_for(dtype);
  std::vector<PoolProgram> all;
  for (const PoolShape& one_shape : pool_shapes()) {
    const Shape& x_shape = one_shape.x;
    const Pool& pool = one_shape.pool;
    const auto added = [&](std::string_view kind, const Shape& shape) {
      PoolProgram& one = all.emplace_back();
      one.what = std::string(kind) + " " + std::string(name(dtype)) + x_shape.to_string() + " " + describe(pool);
      one.window = pool.window_h * pool.window_w;
      one.data = one.program.add(tensor("data", dtype, shape, Role::input));
      return &one;
    };
    const Shape y_shape = pool_extents(max_pool_forward_kind, pool, x_shape).output();
    PoolProgram* one = added("max_pool_forward", x_shape);
    (void)max_pool_forward(one->program, pool, math, "y", one->data);
    one = added("average_pool_forward", x_shape);
    (void)average_pool_forward(one->program, pool, math, "y", one->data);
    one = added("max_pool_backward", y_shape);
    one->index = one->program.add(tensor("index", DType::u8, y_shape, Role::activation));
    (void)max_pool_backward(one->program, pool, math, "dx", one->data, *one->index, x_shape[1], x_shape[2]);
    one = added("average_pool_backward", y_shape);
    (void)average_pool_backward(one->program, pool, math, "dx", one->data, x_shape[1], x_shape[2]);
  }
  return all;
}

/// Numbers of which many are equal, and any indices.
inline void fill(ProgramRun& run, const PoolProgram& p) {
  std::vector<double> values(static_cast<std::size_t>(run.program().spec(p.data).shape.elements()));
  std::uint32_t state = 7;
  const auto next = [&state](std::int64_t below) {
    state = state * 1664525U + 1013904223U;
    return static_cast<double>((state >> 8U) % static_cast<std::uint32_t>(below));
  };
  for (double& value : values) value = (next(9) - 4.0) / 3.0;
  run.set(p.data, values);
  if (!p.index) return;
  values.resize(static_cast<std::size_t>(run.program().spec(*p.index).shape.elements()));
  for (double& value : values) value = next(p.window);
  run.set(*p.index, values);
}

/// NaN in row 1 and column 1, the last element of the first window.
inline void expect_nan_to_be_largest(const BackendContract& on) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, {1, 4, 4, 1}, Role::input));
  const MaxPoolForward out =
      max_pool_forward(program, {.window_h = 2, .window_w = 2, .stride_h = 2, .stride_w = 2}, {}, "pool", x);
  const auto fill = [&](ProgramRun& run) {
    run.set(x, std::vector<double>(16, 1.0));
    spoil(run, x, 5);
  };
  EXPECT_EQ(on.judge(program, fill), "");
  ProgramRun run(on.backend, program);
  fill(run);
  run.run();
  expect_nan_where(run.get(out.y), [](std::size_t i) { return i == 0; });
  EXPECT_EQ(run.get(out.index), (std::vector<double>{3, 0, 0, 0}));
}

}  // namespace gpubench::testing
