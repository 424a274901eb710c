// What matrix products have to keep on every backend: transposes, factors, GELU of unrounded sums, parts of packed
// tensors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "reference/ops/gemm.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

struct GemmTypes {
  DType data, c = data, bias = data;
};

struct GemmProgram {
  Program program;
  std::int64_t k;
  ValueId a, b;
  GemmOperands operands;
  GemmResult result;

  /// Of 0 batches: without that axis.
  GemmProgram(const GemmTypes& types, const GemmExtents& e, const Gemm& attributes) : k(e.k) {
    const auto matrix = [&](const char* name, DType dtype, std::int64_t rows, std::int64_t columns, bool transposed) {
      if (transposed) std::swap(rows, columns);
      const Shape shape = e.batch == 0 ? Shape{rows, columns} : Shape{e.batch, rows, columns};
      return tensor(name, dtype, shape, Role::activation);
    };
    a = program.add(matrix("a", types.data, e.m, e.k, attributes.transpose_a));
    b = program.add(matrix("b", types.data, e.k, e.n, attributes.transpose_b));
    const TensorSpec c = matrix("c", types.c, e.m, e.n, false);
    if (attributes.beta != 0.0) operands.c_in = program.add(c);
    if (attributes.bias) operands.bias = program.add(tensor("bias", types.bias, Shape{e.n}, Role::parameter));
    if (attributes.epilogue == Gemm::Epilogue::gelu_gradient)
      operands.pre = program.add(matrix("pre", types.c, e.m, e.n, false));
    std::optional<ValueId> into;
    if (!operands.c_in) into = program.reserve(c);
    result = gemm(program, attributes, math_for(types.data), "gemm", a, b, operands, into);
  }
};

/// Sums of size 1, and pre-activations where GELU bends.
inline void fill(ProgramRun& run, const GemmProgram& p) {
  run.set_random(p.a, 1);
  run.set_random(p.b, 2, 1.0 / std::sqrt(static_cast<double>(p.k)));
  if (p.operands.c_in) run.set_random(*p.operands.c_in, 3);
  if (p.operands.bias) run.set_random(*p.operands.bias, 4);
  if (p.operands.pre) run.set_random(*p.operands.pre, 5, 2.0);
}

inline void expect_bounds_of_products(const BackendContract& on, const std::vector<GemmTypes>& all,
                                      const std::vector<GemmExtents>& extents, const std::vector<Gemm>& attributes) {
  for (const GemmTypes& types : all) {
    for (const GemmExtents& e : extents) {
      for (const Gemm& each : attributes) {
        const GemmProgram p(types, e, each);
        EXPECT_EQ(on.judge(p.program, [&](ProgramRun& run) { fill(run, p); }), "") << p.program.to_string();
      }
    }
  }
}

inline std::vector<Gemm> with_every_transpose(Gemm attributes = {}) {
  std::vector<Gemm> all;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      attributes.transpose_a = transpose_a;
      attributes.transpose_b = transpose_b;
      all.push_back(attributes);
    }
  }
  return all;
}

inline const std::vector<Gemm> products_with_gelu{
    {.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu},
    {.epilogue = Gemm::Epilogue::gelu_gradient},
    {.bias = true, .epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf},
    {.alpha = 0.5, .epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf},
    {.epilogue = Gemm::Epilogue::gelu_gradient, .gelu_form = GeluForm::erf}};

/// q = x w for one third of a packed [tokens, 3 n] tensor, read as one third of another.
inline void expect_bounds_of_packed_operands(const BackendContract& on) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    constexpr std::int64_t m = 40, n = 48, k = 32;
    Program program;
    const PartOfRows a = part_of_rows(program, tensor("a", type, {m, k}, Role::activation), 3 * k, k);
    const ValueId b = program.add(tensor("b", type, {k, n}, Role::parameter));
    const ValueId packed = program.reserve(tensor("packed", type, {m, 3 * n}, Role::activation));
    TensorSpec c = tensor("c", type, {m, n}, Role::activation);
    c.layout.strides = {3 * n, 1};
    (void)gemm(program, {}, math_for(type), "gemm", a.part, b, {}, program.part(packed, c, n));
    const auto fill_both = [&](ProgramRun& run) {
      run.set_random(a.whole, 7);
      run.set_random(b, 8);
    };
    EXPECT_EQ(on.judge(program, fill_both), "") << name(type);
  }
}

}  // namespace gpubench::testing
