// Programs of ops that treat every element alike, for the tests of every backend.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/builders.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"

namespace gpubench::testing {

/// An op with its inputs: `build` gets the program, x and z, of one shape and type, and gives the first output.
struct PointwiseCase {
  std::string name;
  std::function<ValueId(Program&, ValueId x, ValueId z)> build;
  bool spreads = true;  ///< a NaN in x gives one; else x only chooses between z and 0
};

/// Sums in f64 for f64, else in f32.
inline Math math_of(Program& program, ValueId x) {
  Math math;
  if (program.spec(x).dtype == DType::f64) math.accumulate = DType::f64;
  return math;
}

/// The attributes to try an op with: every form, and a factor that f32 rounds.
inline std::vector<Attributes> pointwise_attributes(const OpKind& kind) {
  if (kind == gelu_forward_kind || kind == gelu_backward_kind)
    return {make_attributes(kind), make_attributes(kind, std::array{NamedValue{"form", "erf"}})};
  if (kind == scale_kind) return {make_attributes(kind, std::array{NamedValue{"factor", 0.3}})};
  return {make_attributes(kind)};
}

/// copy, and every op of pointwise_kinds but cast (Cast.* tries that from type to type), whose operands are x, z, z.
inline std::vector<PointwiseCase> pointwise_cases() {
  std::vector<PointwiseCase> cases{{"copy", [](Program& p, ValueId x, ValueId) { return copy(p, "copy", x); }}};
  for (const OpKind& kind : pointwise_kinds) {
    if (kind == cast_kind) continue;
    for (const Attributes& attributes : pointwise_attributes(kind)) {
      std::string name(kind.name);
      if (const std::string others = attributes.to_string(); !others.empty()) name += " " + others;
      const auto build = [=](Program& p, ValueId x, ValueId z) {
        std::vector<ValueId> inputs(declared_operands(kind.inputs).size(), z);
        inputs.front() = x;
        const std::vector<TensorSpec> outputs(declared_operands(kind.outputs).size(), p.spec(x));
        return append_call(p, {kind, attributes, math_of(p, x), inputs, {}, name}, outputs).outputs.front();
      };
      cases.push_back({name, build, !(kind == relu_backward_kind)});
    }
  }
  return cases;
}

/// Those whose names begin so.
inline std::vector<PointwiseCase> pointwise_cases(std::initializer_list<std::string_view> names) {
  std::vector<PointwiseCase> cases;
  for (const PointwiseCase& one : pointwise_cases()) {
    if (std::ranges::any_of(names, [&](std::string_view name) { return one.name.starts_with(name); }))
      cases.push_back(one);
  }
  return cases;
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
