// Programs of dropout, for the tests of every backend.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/dropout.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

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
