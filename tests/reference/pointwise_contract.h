// What ops that treat every element alike have to keep on every backend, against the textbook; and dropout.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "reference/ops/dropout.h"
#include "tests/reference/backend_contract.h"
#include "tests/reference/pointwise_programs.h"

namespace gpubench::testing {

inline void expect_bounds_at_every_size(const BackendContract& on, std::initializer_list<std::int64_t> sizes) {
  for (const PointwiseCase& op : pointwise_cases()) {
    for (const DType dtype : on.types) {
      for (const std::int64_t n : sizes) {
        const PointwiseProgram e = pointwise_program(op, dtype, Shape{n});
        const auto fill = [&](ProgramRun& run) {
          run.set_random(e.x, 1, 2.0);
          run.set_random(e.z, 2, 1.0);
        };
        EXPECT_EQ(on.judge(e.program, fill), "") << op.name << ", " << name(dtype) << ", n = " << n;
      }
    }
  }
}

inline void expect_bounds_of_repeated_rows(const BackendContract& on) {
  for (const DType dtype : on.types) {
    for (const std::int64_t repeats : {1, 4, 12}) {
      for (const auto& [n, first] : {std::pair{1, 3}, {31, 3}, {64, 8}, {1000, 3}}) {
        const ModulatedRows e(dtype, 12, repeats, n, first);
        const auto fill = [&](ProgramRun& run) {
          run.set_random(e.x, 1, 2.0);
          run.set_random(e.both, 2, 1.0);
        };
        EXPECT_EQ(on.judge(e.program, fill), "") << name(dtype) << ", " << repeats << ", n = " << n;
      }
    }
  }
}

/// Where parts begin and how wide they and their wholes are.
struct Parts {
  std::int64_t columns, wide_x, x_first, z_first, wide_y, y_first;
};

/// An op of parts of wider rows: x and z of `source`, each output is a whole storage.
struct PartsProgram {
  Program program;
  ValueId source;
  std::vector<ValueId> wholes;

  PartsProgram(const PointwiseCase& op, DType dtype, const Parts& parts) {
    const std::int64_t rows = 37;
    const auto part = [&](ValueId whole, const std::string& part_name, std::int64_t first) {
      TensorSpec spec = program.spec(whole);
      spec.name = part_name;
      spec.layout.strides = {spec.shape[1], 1};
      spec.shape = Shape{rows, parts.columns};
      return program.part(whole, spec, first);
    };
    source = program.add(tensor("wide_x", dtype, Shape{rows, parts.wide_x}, Role::activation));
    const ValueId x = part(source, "x", parts.x_first), z = part(source, "z", parts.z_first);
    // The builder makes the attributes and inputs; only where the result goes is changed.
    const PointwiseProgram model = pointwise_program(op, dtype, Shape{rows, parts.columns});
    OpCall call = model.program.op(0);
    for (ValueId& input : call.inputs) input = input == model.x ? x : z;
    for (ValueId& output : call.outputs) {
      const std::string number = std::to_string(wholes.size());
      wholes.push_back(program.reserve(tensor("wide_y" + number, dtype, Shape{rows, parts.wide_y}, Role::activation)));
      output = part(wholes.back(), "y" + number, parts.y_first);
    }
    program.append(call);
  }
};

inline void expect_bounds_of_parts(const BackendContract& on, std::initializer_list<Parts> all) {
  for (const Parts& parts : all) {
    for (const PointwiseCase& op : pointwise_cases()) {
      for (const DType dtype : on.types) {
        const PartsProgram e(op, dtype, parts);
        const auto fill = [&](ProgramRun& run) { run.set_random(e.source, 1, 2.0); };
        EXPECT_EQ(on.judge(e.program, fill), "") << op.name << ", " << name(dtype) << ", " << parts.columns;
        ProgramRun run(on.backend, e.program);
        fill(run);
        std::vector<std::vector<double>> untouched;
        for (const ValueId whole : e.wholes) untouched.push_back(run.get(whole));
        run.run();
        for (std::size_t k = 0; k < e.wholes.size(); ++k) {
          const std::vector<double> after = run.get(e.wholes[k]);
          for (std::size_t i = 0; i < after.size(); ++i) {
            const std::int64_t column = static_cast<std::int64_t>(i) % parts.wide_y - parts.y_first;
            if (column >= 0 && column < parts.columns) continue;
            ASSERT_EQ(after[i], untouched[k][i]) << op.name << " wrote column " << column << " of its part";
          }
        }
      }
    }
  }
}

inline void expect_nan_to_stay_in_its_element(const BackendContract& on) {
  for (const PointwiseCase& op : pointwise_cases()) {
    for (const DType dtype : on.types) {
      const PointwiseProgram e = pointwise_program(op, dtype, Shape{100});
      ProgramRun run(on.backend, e.program);
      std::vector<double> values(100, 0.5);
      values[41] = std::nan("");
      run.set(e.x, values);
      run.set(e.z, std::vector<double>(100, 0.25));
      run.run();
      const std::vector<double> y = run.get(e.y);
      for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(std::isnan(y[i]), op.spreads && i == 41) << op.name << " at " << i;
    }
  }
}

/// GELU in both forms, forward and backward, of these.
inline void expect_bounds_of_gelu(const BackendContract& on, DType dtype, const std::vector<double>& values) {
  for (const PointwiseCase& op : pointwise_cases({"gelu"})) {
    const PointwiseProgram e = pointwise_program(op, dtype, Shape{static_cast<std::int64_t>(values.size())});
    const auto fill = [&](ProgramRun& run) {
      run.set(e.x, values);
      if (bits_of(dtype) == 16)
        run.set(e.z, std::vector<double>(values.size(), 1.0));  // the slope itself
      else
        run.set_random(e.z, 5);
    };
    EXPECT_EQ(on.judge(e.program, fill), "") << op.name << ", " << name(dtype);
  }
}

/// Every finite number of a type of 16 bits.
inline std::vector<double> every_finite(DType dtype) {
  std::vector<double> values;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const double value = load(dtype, reinterpret_cast<const std::byte*>(&pattern));
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

/// `count` points in which both forms of GELU and all of their cancellations can be seen: f32 shows what bf16 hides.
inline std::vector<double> interesting_interval(int count) {
  std::vector<double> values;
  for (int i = -count / 2; i < count / 2; ++i) values.push_back(i * 24.0 / count + 1e-7);
  return values;
}

struct DropoutProgram {
  std::string what;
  Program program;
  ValueId x, seed, offset, y;
};

/// Of one run, of rows within wider ones (so that groups of four words begin anywhere in a row), from and to other
/// strides.
inline std::vector<DropoutProgram> dropout_programs(DType dtype) {
  struct Layouts {
    Shape shape;
    std::int64_t x_stride, y_stride;
  };
  std::vector<DropoutProgram> all;
  for (const Layouts& l :
       {Layouts{{1, 1}, 1, 1}, Layouts{{1, 7}, 7, 7}, Layouts{{3, 1030}, 1030, 1030}, Layouts{{5, 64}, 96, 64},
        Layouts{{5, 13}, 16, 13}, Layouts{{4, 30}, 40, 33}, Layouts{{9, 4096}, 4096, 4096}}) {
    for (const double p : {0.0, 0.1, 0.75}) {
      DropoutProgram d{l.shape.to_string() + " in rows of " + std::to_string(l.x_stride) + ", p = " + std::to_string(p),
                       {},
                       {},
                       {},
                       {},
                       {}};
      const auto rows = [&](const char* name, std::int64_t stride) {
        TensorSpec spec = tensor(name, dtype, l.shape, Role::activation);
        spec.layout.strides = {stride, 1};
        return spec;
      };
      d.x = d.program.add(rows("x", l.x_stride));
      d.seed = d.program.add(tensor("seed", DType::i32, {2}, Role::scalar));
      d.offset = d.program.add(tensor("offset", DType::i32, {2}, Role::scalar));
      d.y = dropout(d.program, {p}, math_for(dtype), "dropout", d.x, {d.seed, d.offset},
                    d.program.reserve(rows("y", l.y_stride)));
      all.push_back(std::move(d));
    }
  }
  return all;
}

inline void fill(ProgramRun& run, const DropoutProgram& d) {
  run.set_random(d.x, 1);
  run.set(d.seed, std::vector<double>{-123456789, 42});
  run.set(d.offset, std::vector<double>{7, -8});
}

}  // namespace gpubench::testing
