// What rotary position embedding has to keep on every backend.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/rotary.h"
#include "reference/ops/tensor_checks.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

/// Both ways of pairing, both ways round.
inline std::vector<Rotary> rotary_kinds() {
  constexpr auto interleaved = Rotary::Pairing::interleaved;
  return {{}, {.inverse = true}, {.pairing = interleaved}, {.pairing = interleaved, .inverse = true}};
}

struct RotaryProgram {
  Program program;
  ValueId x;            ///< what is turned
  RotaryTables tables;  ///< f32; f64 for x in f64
  ValueId y;
  ValueId whole_x, whole_y;  ///< the storages that x and y are parts of; themselves where they are none
};

/// Where a part of packed tokens [b s, width] begins: element `first` of each.
struct PackedPlace {
  std::int64_t width = 0;
  std::int64_t first = 0;
};

namespace rotary_detail {

inline void add_tables(RotaryProgram& r, const Shape& shape, DType dtype) {
  const DType type = statistic_type(dtype);
  r.tables.cos = r.program.add(tensor("cos", type, Shape{shape[1], shape[3] / 2}, Role::input));
  r.tables.sin = r.program.add(tensor("sin", type, Shape{shape[1], shape[3] / 2}, Role::input));
}

inline TensorSpec packed_heads(std::string name, DType dtype, const Shape& shape, std::int64_t width) {
  TensorSpec spec = tensor(std::move(name), dtype, shape, Role::activation);
  spec.layout.strides = {shape[1] * width, width, shape[3], 1};
  return spec;
}

}  // namespace rotary_detail

/// x [b, s, h, d] -> y, both row-major.
inline RotaryProgram rotary_program(const Rotary& attributes, DType dtype, const Shape& shape) {
  RotaryProgram r;
  r.x = r.whole_x = r.program.add(tensor("x", dtype, shape, Role::activation));
  rotary_detail::add_tables(r, shape, dtype);
  r.y = r.whole_y = rotary(r.program, attributes, math_for(dtype), "op", r.x, r.tables);
  return r;
}

/// x and y are parts of packed tokens, as q and k are of qkv.
inline RotaryProgram packed_rotary_program(const Rotary& attributes, DType dtype, const Shape& shape,
                                           const PackedPlace& from, const PackedPlace& to) {
  RotaryProgram r;
  const std::int64_t tokens = shape[0] * shape[1];
  r.whole_x = r.program.add(tensor("whole_x", dtype, Shape{tokens, from.width}, Role::activation));
  r.x = r.program.part(r.whole_x, rotary_detail::packed_heads("x", dtype, shape, from.width), from.first);
  rotary_detail::add_tables(r, shape, dtype);
  r.whole_y = r.program.reserve(tensor("whole_y", dtype, Shape{tokens, to.width}, Role::activation));
  const ValueId y = r.program.part(r.whole_y, rotary_detail::packed_heads("y", dtype, shape, to.width), to.first);
  r.y = rotary(r.program, attributes, math_for(dtype), "op", r.x, r.tables, y);
  return r;
}

/// The same with y in x's memory.
inline RotaryProgram in_place_rotary_program(const Rotary& attributes, DType dtype, const Shape& shape,
                                             const PackedPlace& place) {
  RotaryProgram r;
  r.whole_x = r.program.add(tensor("whole", dtype, Shape{shape[0] * shape[1], place.width}, Role::activation));
  r.x = r.program.part(r.whole_x, rotary_detail::packed_heads("x", dtype, shape, place.width), place.first);
  rotary_detail::add_tables(r, shape, dtype);
  r.whole_y = r.whole_x;
  r.y = rotary(r.program, attributes, math_for(dtype), "op", r.x, r.tables, r.program.update(r.x, "x'"));
  return r;
}

/// Values to turn, and tables of any numbers: the op asks no more of them.
inline void fill(ProgramRun& run, const RotaryProgram& r) {
  run.set_random(r.whole_x, 1, 2.0);
  run.set_random(r.tables.cos, 2, 0.5);
  run.set_random(r.tables.sin, 3, 0.5);
}

/// Which program it was, for a message.
inline std::string told(const Rotary& attributes, DType dtype, const Shape& shape) {
  return std::string(name(dtype)) + shape.to_string() + " " + describe(attributes);
}

inline void expect_bounds_of_rotary(const BackendContract& on, const std::vector<Shape>& shapes) {
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : on.types) {
      for (const Shape& shape : shapes) {
        const RotaryProgram r = rotary_program(attributes, dtype, shape);
        EXPECT_EQ(on.judge(r.program, [&](ProgramRun& run) { fill(run, r); }), "") << told(attributes, dtype, shape);
      }
    }
  }
}

/// Whether all of `whole` but its parts of [h, d] that begin at `place` is in `after` as it was.
inline void expect_rest_untouched(const PackedPlace& place, const Shape& shape, const std::vector<double>& before,
                                  const std::vector<double>& after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::int64_t column = static_cast<std::int64_t>(i) % place.width - place.first;
    if (column >= 0 && column < shape[2] * shape[3]) continue;
    ASSERT_EQ(after[i], before[i]) << "wrote element " << i;
  }
}

/// Where x and y are in packed tokens, heads of `shape`.
struct RotaryParts {
  Shape shape;
  PackedPlace from, to;
};

/// Out of place from `from` to `to`; in place in `from`, with the same bits.
inline void expect_rotary_of_parts(const BackendContract& on, const std::vector<RotaryParts>& all) {
  for (const auto& [shape, from, to] : all) {
    for (const Rotary& attributes : rotary_kinds()) {
      for (const DType dtype : on.types) {
        const RotaryProgram apart = packed_rotary_program(attributes, dtype, shape, from, to);
        const RotaryProgram in_place = in_place_rotary_program(attributes, dtype, shape, from);
        std::vector<std::vector<double>> results;
        for (const RotaryProgram* r : {&apart, &in_place}) {
          const auto set = [&](ProgramRun& run) { fill(run, *r); };
          EXPECT_EQ(on.judge(r->program, set), "")
              << told(attributes, dtype, shape) << " from width " << from.width << " to " << to.width;
          ProgramRun run(on.backend, r->program);
          set(run);
          const std::vector<double> before = run.get(r->whole_y);
          run.run();
          expect_rest_untouched(r == &apart ? to : from, shape, before, run.get(r->whole_y));
          results.push_back(run.get(r->y));
        }
        EXPECT_EQ(results[0], results[1]) << told(attributes, dtype, shape);
      }
    }
  }
}

inline void expect_nan_to_stay_in_its_pair(const BackendContract& on) {
  for (const std::size_t d : {32, 38}) {
    const Shape shape{1, 4, 2, static_cast<std::int64_t>(d)};
    for (const Rotary& attributes : rotary_kinds()) {
      for (const DType dtype : on.types) {
        const RotaryProgram r = rotary_program(attributes, dtype, shape);
        ProgramRun run(on.backend, r.program);
        fill(run, r);
        const std::size_t spoilt = 3 * d + 24;
        spoil(run, r.x, spoilt);

        run.run();

        const std::size_t partner = attributes.pairing == Rotary::Pairing::half ? spoilt - d / 2 : spoilt + 1;
        expect_nan_where(run.get(r.y), [&](std::size_t i) { return i == spoilt || i == partner; });
      }
    }
  }
}

}  // namespace gpubench::testing
