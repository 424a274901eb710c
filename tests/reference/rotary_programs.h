// Programs of rotary position embedding, for the tests of every backend.
#pragma once

#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/rotary.h"
#include "tests/reference/cpu/program_run.h"

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
  const DType type = dtype == DType::f64 ? DType::f64 : DType::f32;
  r.tables.cos = r.program.add(tensor("cos", type, Shape{shape[1], shape[3] / 2}, Role::input));
  r.tables.sin = r.program.add(tensor("sin", type, Shape{shape[1], shape[3] / 2}, Role::input));
}

inline Math math_for(DType dtype) { return dtype == DType::f64 ? Math{.accumulate = DType::f64} : Math{}; }

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
  r.y = r.whole_y = rotary(r.program, attributes, rotary_detail::math_for(dtype), "op", r.x, r.tables);
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
  r.y = rotary(r.program, attributes, rotary_detail::math_for(dtype), "op", r.x, r.tables, y);
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
  r.y = rotary(r.program, attributes, rotary_detail::math_for(dtype), "op", r.x, r.tables, r.program.update(r.x, "x'"));
  return r;
}

/// Whether element `column` of a token of packed width lies in the part of [h, d] that begins at `place`.
inline bool lies_in_part(const PackedPlace& place, const Shape& shape, std::int64_t column) {
  return column >= place.first && column < place.first + shape[2] * shape[3];
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

}  // namespace gpubench::testing
