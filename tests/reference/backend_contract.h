// What ops have to keep on every backend, against the textbook: each family of ops has a header of contracts, which the
// tests of the CPU and of the CUDA backend run with their sizes.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

/// Sets the inputs of a program.
using Fill = std::function<void(ProgramRun&)>;

/// A backend, and how its tests judge a program. The backend lives as long as `judges`.
struct BackendContract {
  Backend& backend;
  std::vector<DType> types;  ///< of floating-point numbers
  std::function<std::string(const Program&, const Fill&, std::int64_t stride)> judges;

  /// On what `fill` sets, every `stride`th unit of each output: "" where all is well, else what is not.
  [[nodiscard]] std::string judge(const Program& program, const Fill& fill, std::int64_t stride = 1) const {
    return judges(program, fill, stride);
  }
};

/// Sums in f64 for data in f64.
inline Math math_for(DType data) { return data == DType::f64 ? Math{.accumulate = DType::f64} : Math{}; }

/// Each of these programs, which says which it is in `what`, on what fill() sets.
template <class Named>
void expect_bounds_of_each(const BackendContract& on, const std::vector<Named>& programs) {
  EXPECT_FALSE(programs.empty());
  for (const Named& p : programs) EXPECT_EQ(on.judge(p.program, [&](ProgramRun& run) { fill(run, p); }), "") << p.what;
}

/// Those that `make` returns for each type of the backend.
template <class Make>
void expect_bounds_in_every_type(const BackendContract& on, Make make) {
  for (const DType dtype : on.types) {
    SCOPED_TRACE(name(dtype));
    expect_bounds_of_each(on, make(dtype));
  }
}

/// Columns `first` and on of the rows of a wider tensor: the whole, which is filled, and the part.
struct PartOfRows {
  ValueId whole, part;
};

inline PartOfRows part_of_rows(Program& program, TensorSpec part, std::int64_t width, std::int64_t first) {
  const TensorSpec whole = tensor("whole_" + part.name, part.dtype, Shape{part.shape[0], width}, part.role);
  part.layout = whole.layout;
  const ValueId id = program.add(whole);
  return {id, program.part(id, part, first)};
}

/// NaN in `got` exactly where `expected` is true of an element's index.
inline void expect_nan_where(const std::vector<double>& got, const std::function<bool(std::size_t)>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), expected(i)) << i;
}

/// Sets one element to NaN.
inline void spoil(ProgramRun& run, ValueId id, std::size_t element) {
  std::vector<double> values = run.get(id);
  values[element] = std::nan("");
  run.set(id, values);
}

}  // namespace gpubench::testing
