// Programs of the optimizer's ops over many tensors, for the tests of every backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/optimizer.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

/// One gradient of each size, its type by turns one of `types`.
inline std::vector<ValueId> add_gradients(Program& program, const std::vector<std::int64_t>& sizes,
                                          const std::vector<DType>& types) {
  std::vector<ValueId> ids;
  for (const std::int64_t size : sizes) {
    const DType dtype = types[ids.size() % types.size()];
    ids.push_back(program.add(tensor("g" + std::to_string(ids.size()), dtype, Shape{size}, Role::gradient)));
  }
  return ids;
}

struct Training {
  Program program;
  ValueId lr, step;
  std::vector<AdamWTensor> tensors;
  std::optional<ValueId> norm;
};

/// One AdamW step, with a limit one of clip_adamw; types of gradients, and of copies where there are any, by turns;
/// weights, moments and sums in `state`.
inline Training training(const AdamW& hyper, const std::vector<std::int64_t>& sizes,
                         const std::vector<DType>& gradient_types, const std::vector<DType>& copy_types,
                         DType state = DType::f32, DType lr = DType::f32, std::optional<double> limit = {}) {
  Training t;
  if (limit) t.norm = t.program.add(tensor("norm", state, Shape{1}, Role::scalar));
  t.lr = t.program.add(tensor("lr", lr, Shape{1}, Role::scalar));
  t.step = t.program.add(tensor("step", DType::i32, Shape{1}, Role::scalar));
  for (const std::int64_t size : sizes) {
    const std::size_t index = t.tensors.size();
    const std::string number = std::to_string(index);
    const auto add = [&](const char* kind, DType dtype, Role role) {
      return t.program.add(tensor(kind + number, dtype, Shape{size}, role));
    };
    AdamWTensor parameter;
    parameter.weight = add("w", state, Role::parameter);
    parameter.gradient = add("g", gradient_types[index % gradient_types.size()], Role::gradient);
    parameter.m = add("m", state, Role::state);
    parameter.v = add("v", state, Role::state);
    if (hyper.copies) parameter.copy = add("c", copy_types[index % copy_types.size()], Role::parameter);
    t.tensors.push_back(parameter);
  }
  const Math math{.accumulate = state};
  if (limit) {
    clip_adamw(t.program, {hyper, *limit}, math, "op", *t.norm, t.lr, t.step, t.tensors);
  } else {
    adamw(t.program, hyper, math, "op", t.lr, t.step, t.tensors);
  }
  return t;
}

/// Weights, gradients and moments as in a training before its step `step`; `norm` is what clip_adamw is told.
inline void set_state(ProgramRun& run, const Training& t, double step, double norm = 3.7) {
  if (t.norm) run.set(*t.norm, std::vector<double>{norm});
  run.set(t.lr, std::vector<double>{6e-4});
  run.set(t.step, std::vector<double>{step});
  for (std::size_t i = 0; i < t.tensors.size(); ++i) {
    const AdamWTensor& parameter = t.tensors[i];
    run.set_random(parameter.weight, 10 * i, 0.02);
    run.set_random(parameter.gradient, 10 * i + 1, 1e-3);
    std::vector<double> g = run.get(parameter.gradient);
    for (std::size_t k = 0; k < g.size(); k += 8) g[k] *= 1e-5;  // about epsilon, where epsilon matters
    run.set(parameter.gradient, g);
    run.set_random(parameter.m, 10 * i + 2, step > 1 ? 1e-3 : 0.0);
    run.set_random(parameter.v, 10 * i + 3, step > 1 ? 1e-3 : 0.0);
    std::vector<double> v = run.get(parameter.v);
    for (double& value : v) value *= value;
    run.set(parameter.v, v);
    if (parameter.copy) run.set_random(*parameter.copy, 10 * i + 4);
  }
}

struct SgdTraining {
  Program program;
  ValueId lr;
  std::vector<SgdTensor> tensors;
};

/// One SGD step; types as in training().
inline SgdTraining sgd_training(const Sgd& hyper, const std::vector<std::int64_t>& sizes,
                                const std::vector<DType>& gradient_types, const std::vector<DType>& copy_types,
                                DType state = DType::f32) {
  SgdTraining t;
  t.lr = t.program.add(tensor("lr", state, Shape{1}, Role::scalar));
  for (const std::int64_t size : sizes) {
    const std::size_t index = t.tensors.size();
    const auto add = [&](const char* kind, DType dtype, Role role) {
      return t.program.add(tensor(kind + std::to_string(index), dtype, Shape{size}, role));
    };
    SgdTensor parameter{add("w", state, Role::parameter),
                        add("g", gradient_types[index % gradient_types.size()], Role::gradient),
                        add("m", state, Role::state),
                        {}};
    if (hyper.copies) parameter.copy = add("c", copy_types[index % copy_types.size()], Role::parameter);
    t.tensors.push_back(parameter);
  }
  sgd(t.program, hyper, Math{.accumulate = state}, "op", t.lr, t.tensors);
  return t;
}

inline void set_state(ProgramRun& run, const SgdTraining& t) {
  run.set(t.lr, std::vector<double>{0.1});
  for (std::size_t i = 0; i < t.tensors.size(); ++i) {
    run.set_random(t.tensors[i].weight, 10 * i, 0.02);
    run.set_random(t.tensors[i].gradient, 10 * i + 1, 1e-3);
    run.set_random(t.tensors[i].m, 10 * i + 2, 1e-3);
    if (t.tensors[i].copy) run.set_random(*t.tensors[i].copy, 10 * i + 3);
  }
}

}  // namespace gpubench::testing
