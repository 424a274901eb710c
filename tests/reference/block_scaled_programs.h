// Products of block-scaled operands, for the tests of every backend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/gemm.h"

namespace gpubench::testing {

/// Types of a, b and their scales, which say the format.
struct BlockScaledTypes {
  DType a = DType::f8_e4m3, b = DType::f8_e4m3, scales = DType::u8;
};
inline constexpr BlockScaledTypes mxfp8{}, mxfp8_mixed{DType::f8_e4m3, DType::f8_e5m2, DType::u8},
    mxfp4{DType::f4_e2m1, DType::f4_e2m1, DType::u8}, nvfp4{DType::f4_e2m1, DType::f4_e2m1, DType::f8_e4m3};

/// c [m, n] = a [m, k] b [n, k]^T. Factors where the scales are e4m3.
struct BlockScaledProgram {
  BlockScaledTypes types;
  GemmExtents extents;
  Program program;
  ValueId a, b, blocks_a, blocks_b;
  GemmOperands operands;
  GemmResult result;

  BlockScaledProgram(const BlockScaledTypes& of, const GemmExtents& e, DType c = DType::bf16, Gemm attributes = {})
      : types(of), extents(e) {
    const std::int64_t blocks = e.k / block_of_scale(of.scales);
    const auto add = [this](const char* name, DType type, Shape shape) {
      return program.add(tensor(name, type, std::move(shape), Role::input));
    };
    a = add("a", of.a, {e.m, e.k});
    b = add("b", of.b, {e.n, e.k});
    operands.blocks_a = blocks_a = add("blocks_a", of.scales, {e.m, blocks});
    operands.blocks_b = blocks_b = add("blocks_b", of.scales, {e.n, blocks});
    attributes.transpose_b = attributes.blocks = true;
    attributes.scaled = of.scales == DType::f8_e4m3;
    if (attributes.scaled) {
      operands.scale_a = add("scale_a", DType::f32, {1});
      operands.scale_b = add("scale_b", DType::f32, {1});
    }
    if (attributes.bias) operands.bias = add("bias", c, {e.n});
    if (attributes.beta != 0.0) operands.c_in = add("c_in", c, {e.m, e.n});
    std::optional<ValueId> into;
    if (!operands.c_in) into = program.reserve(tensor("c", c, {e.m, e.n}, Role::activation));
    result = gemm(program, attributes, {}, "product", a, b, operands, into);
  }

  [[nodiscard]] std::string what() const {
    std::string text;
    for (const ValueId input : program.op(0).inputs) text += program.spec(input).to_string() + " ";
    return text + describe(program.op(0).attributes.as<Gemm>());
  }

  /// Scales that differ from block to block and row to row: codes from `low` to low + 6, or e4m3 of both signs, which
  /// does not count. In any type that has set() and set_random().
  template <class Run>
  void fill(Run& run, int low_a = 124, int low_b = 124) const {
    run.set_random(a, 1, types.a == DType::f4_e2m1 ? 2.0 : 100.0);
    run.set_random(b, 2, types.b == DType::f4_e2m1 ? 2.0 : 100.0);
    if (types.scales == DType::u8) {
      const auto codes = [&](ValueId id, int low) {
        std::vector<double> stored(static_cast<std::size_t>(program.spec(id).shape.elements()));
        for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = low + static_cast<int>(i * 11 / 3 % 7);
        run.set(id, stored);
      };
      codes(blocks_a, low_a);
      codes(blocks_b, low_b);
    } else {
      run.set_random(blocks_a, 3, 4.0);
      run.set_random(blocks_b, 4, 4.0);
      run.set(*operands.scale_a, std::vector<double>{0.3});
      run.set(*operands.scale_b, std::vector<double>{1.7});
    }
    if (operands.bias) run.set_random(*operands.bias, 5);
    if (operands.c_in) run.set_random(*operands.c_in, 6);
  }
};

}  // namespace gpubench::testing
