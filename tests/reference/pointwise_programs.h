// Programs of ops that treat every element alike, for the tests of every backend.
#pragma once

#include <functional>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"

namespace gpubench::testing {

/// An op with its inputs: `build` gets the program, x and z, of one shape and type.
struct PointwiseCase {
  const char* name;
  std::function<ValueId(Program&, ValueId x, ValueId z)> build;
  bool spreads = true;  ///< a NaN in x gives one; else x only chooses between z and 0
};

/// Sums in f64 for f64, else in f32.
inline Math math_of(Program& program, ValueId x) {
  Math math;
  if (program.spec(x).dtype == DType::f64) math.accumulate = DType::f64;
  return math;
}

inline std::vector<PointwiseCase> pointwise_cases() {
  const Gelu erf{GeluForm::erf};
  return {
      {"copy", [](Program& p, ValueId x, ValueId) { return copy(p, "op", x); }},
      {"triad", [](Program& p, ValueId x, ValueId z) { return triad(p, {3.0}, math_of(p, x), "op", x, z); }},
      {"scale", [](Program& p, ValueId x, ValueId) { return scale(p, {0.3}, math_of(p, x), "op", x); }},
      {"add", [](Program& p, ValueId x, ValueId z) { return add(p, math_of(p, x), "op", x, z); }},
      {"gelu tanh", [](Program& p, ValueId x, ValueId) { return gelu_forward(p, Gelu{}, math_of(p, x), "op", x); }},
      {"gelu erf", [=](Program& p, ValueId x, ValueId) { return gelu_forward(p, erf, math_of(p, x), "op", x); }},
      {"gelu tanh backward",
       [](Program& p, ValueId x, ValueId z) { return gelu_backward(p, Gelu{}, math_of(p, x), "op", x, z); }},
      {"gelu erf backward",
       [=](Program& p, ValueId x, ValueId z) { return gelu_backward(p, erf, math_of(p, x), "op", x, z); }},
      {"multiply", [](Program& p, ValueId x, ValueId z) { return multiply(p, math_of(p, x), "op", x, z); }},
      {"modulate", [](Program& p, ValueId x, ValueId z) { return modulate_forward(p, math_of(p, x), "op", x, z, z); }},
      {"modulate backward",
       [](Program& p, ValueId x, ValueId z) { return modulate_backward(p, math_of(p, x), "op", x, z); }},
      {"relu", [](Program& p, ValueId x, ValueId) { return relu_forward(p, math_of(p, x), "op", x); }},
      {"relu backward", [](Program& p, ValueId x, ValueId z) { return relu_backward(p, math_of(p, x), "op", x, z); },
       false},
      {"silu", [](Program& p, ValueId x, ValueId) { return silu_forward(p, math_of(p, x), "op", x); }},
      {"silu backward", [](Program& p, ValueId x, ValueId z) { return silu_backward(p, math_of(p, x), "op", x, z); }},
      {"swiglu", [](Program& p, ValueId x, ValueId z) { return swiglu_forward(p, math_of(p, x), "op", x, z); }},
      {"swiglu backward",
       [](Program& p, ValueId x, ValueId z) { return swiglu_backward(p, math_of(p, x), "op", x, z, z).dgate; }},
  };
}

/// modulate_forward of x [rows, n], a part of wider rows, by scale and shift [rows / repeats, n], both parts of one
/// tensor: `columns` apart, the first at `first`.
struct ModulatedRows {
  Program program;
  ValueId x, both;

  ModulatedRows(DType dtype, std::int64_t rows, std::int64_t repeats, std::int64_t n, std::int64_t first) {
    const auto part = [&](const char* name, ValueId whole, std::int64_t count, std::int64_t at) {
      TensorSpec spec = tensor(name, dtype, Shape{count, n}, Role::activation);
      spec.layout.strides = {program.spec(whole).shape[1], 1};
      return program.part(whole, std::move(spec), at);
    };
    x = program.add(tensor("wide_x", dtype, Shape{rows, n + 8}, Role::activation));
    both = program.add(tensor("both", dtype, Shape{rows / repeats, 2 * n + 8}, Role::activation));
    const ValueId narrow = part("x", x, rows, first), scale = part("scale", both, rows / repeats, first);
    Math math;
    if (dtype == DType::f64) math.accumulate = DType::f64;
    modulate_forward(program, math, "op", narrow, scale, part("shift", both, rows / repeats, first + n));
  }
};

struct PointwiseProgram {
  Program program;
  ValueId x, z, y;
};

inline PointwiseProgram pointwise_program(const PointwiseCase& op, DType dtype, Shape shape) {
  PointwiseProgram e;
  e.x = e.program.add(tensor("x", dtype, shape, Role::activation));
  e.z = e.program.add(tensor("z", dtype, shape, Role::activation));
  e.y = op.build(e.program, e.x, e.z);
  return e;
}

}  // namespace gpubench::testing
