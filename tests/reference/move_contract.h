// What copy, repeat_rows, transpose and reorder have to keep on every backend: the same bits elsewhere, and nothing
// else.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

inline constexpr DType types_to_move[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8};

/// On numbers of size 100 in `filled`.
inline void expect_exact(const BackendContract& on, const Program& program, ValueId filled) {
  EXPECT_EQ(on.judge(program, [&](ProgramRun& run) { run.set_random(filled, 7, 100.0); }), "") << program.to_string();
}

inline void expect_copies(const BackendContract& on, const std::vector<std::int64_t>& sizes) {
  for (const DType dtype : types_to_move) {
    for (const std::int64_t n : sizes) {
      Program program;
      const ValueId x = program.add(tensor("x", dtype, Shape{n}, Role::activation));
      (void)copy(program, "op", x);
      expect_exact(on, program, x);
    }
  }
}

inline void expect_copies_of_parts(const BackendContract& on) {
  for (const std::int64_t first : {0, 3, 8}) {
    for (const std::int64_t columns : {16, 13}) {
      Program program;
      const TensorSpec whole = tensor("whole", DType::bf16, Shape{5, 7, 40}, Role::activation);
      TensorSpec part = whole;
      part.name = "part";
      part.shape = Shape{5, 7, columns};
      const ValueId source = program.add(whole);
      (void)copy(program, "op", program.part(source, part, first));
      expect_exact(on, program, source);
    }
  }
}

/// Into parts of wider rows, as heads that share a part of their keys get it.
inline void expect_repeated_rows(const BackendContract& on) {
  for (const DType dtype : types_to_move) {
    for (const auto& [rows, count, n] :
         std::vector<std::array<std::int64_t, 3>>{{3, 5, 17}, {9, 16, 64}, {40, 9, 1}, {1, 12, 16}, {4, 1, 8}}) {
      for (const std::int64_t first : {0, 7}) {
        Program program;
        const std::int64_t width = n + 8;
        const ValueId x = program.add(tensor("x", dtype, Shape{rows, 1, n}, Role::activation));
        const ValueId whole = program.reserve(tensor("whole", dtype, Shape{rows, count, width}, Role::activation));
        TensorSpec part = tensor("y", dtype, Shape{rows, count, n}, Role::activation);
        part.layout.strides = {count * width, width, 1};
        repeat_rows_into(program, Math{}, "op", x, program.part(whole, part, first));
        expect_exact(on, program, x);
      }
    }
  }
}

inline void expect_transposes(const BackendContract& on) {
  struct Permuted {
    Shape shape;
    std::vector<int> permutation;
  };
  for (const DType dtype : types_to_move) {
    for (const auto& [shape, permutation] : std::vector<Permuted>{{{1, 1}, {1, 0}},
                                                                  {{1, 9}, {1, 0}},
                                                                  {{7, 70}, {0, 1}},
                                                                  {{64, 128}, {1, 0}},
                                                                  {{66, 130}, {1, 0}},
                                                                  {{33, 65}, {1, 0}},
                                                                  {{5, 100}, {1, 0}},
                                                                  {{3, 34, 70}, {0, 2, 1}},
                                                                  {{7, 34, 16}, {1, 0, 2}},
                                                                  {{4, 10, 3, 6}, {3, 1, 0, 2}},
                                                                  {{2, 12, 9, 64}, {0, 2, 1, 3}},
                                                                  {{40, 9, 36}, {2, 1, 0}}}) {
      Program program;
      const ValueId x = program.add(tensor("x", dtype, shape, Role::activation));
      (void)transpose(program, {permutation}, "op", x);
      expect_exact(on, program, x);
    }
  }
}

/// NaN payloads and subnormals.
inline void expect_transposes_to_keep_bits(const BackendContract& on) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Program program;
    const ValueId x = program.add(tensor("x", dtype, Shape{32, 48}, Role::activation));
    const ValueId y = transpose(program, {{1, 0}}, "transpose", x);
    ProgramRun run(on.backend, program);
    // Every element of x still is 0xA5...: a subnormal in neither type, so that one is set as well.
    std::vector<double> values = run.get(x);
    values[5] = dtype == DType::f32 ? 1e-40 : 1e-39;
    values[6] = std::nan("");
    run.set(x, values);

    run.run();

    const std::vector<std::byte> in = run.bytes_of(x), out = run.bytes_of(y);
    const std::size_t size = size_of(dtype);
    for (const std::size_t j : {5U, 6U, 7U}) {  // x[0, j] is y[j, 0]
      for (std::size_t b = 0; b < size; ++b) EXPECT_EQ(out[j * 32 * size + b], in[j * size + b]) << j;
    }
  }
}

inline void expect_reorders(const BackendContract& on, const Shape& shape, const std::vector<Layout>& layouts) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::f64}) {
    for (const Layout& from : layouts) {
      for (const Layout& to : layouts) {
        if (from == to) continue;
        Program program;
        TensorSpec spec = tensor("x", dtype, shape, Role::activation);
        spec.layout = from;
        const ValueId x = program.add(spec);
        (void)reorder(program, to, "op", x);
        expect_exact(on, program, x);
      }
    }
  }
}

}  // namespace gpubench::testing
