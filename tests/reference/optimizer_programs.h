// Programs of the optimizer's ops over many tensors, for the tests of every backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "reference/ops/loss_scaling.h"
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

/// One step of an optimizer that keeps one moment.
struct SgdTraining {
  Program program;
  ValueId lr;
  std::vector<SgdTensor> tensors;
};

/// One step of SGD or Lion; types as in training().
template <class Hyper>
SgdTraining sgd_training(const Hyper& hyper, const std::vector<std::int64_t>& sizes,
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
  const Math math{.accumulate = state};
  if constexpr (std::is_same_v<Hyper, Lion>) {
    lion(t.program, hyper, math, "op", t.lr, t.tensors);
  } else {
    sgd(t.program, hyper, math, "op", t.lr, t.tensors);
  }
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

struct ScaledTraining {
  Program program;
  ValueId scale, tracker, lr, step;
  std::vector<ValueId> gradients;
  std::vector<SgdTensor> sgd;
  std::vector<AdamWTensor> adamw;
};

/// What loss scaling adds to a step: gradients are unscaled, SGD and AdamW update half of the parameters each unless a
/// gradient is infinite or NaN, then the scale is updated. Copies have the type of their gradient.
inline ScaledTraining scaled_training(const std::vector<std::int64_t>& sizes, const std::vector<DType>& gradient_types,
                                      DType state = DType::f32) {
  ScaledTraining t;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape, Role role) {
    return t.program.add(tensor(name, dtype, shape, role));
  };
  t.scale = add("scale", state, Shape{1}, Role::scalar);
  t.tracker = add("tracker", DType::i32, Shape{1}, Role::scalar);
  t.lr = add("lr", state, Shape{1}, Role::scalar);
  t.step = add("step", DType::i32, Shape{1}, Role::scalar);
  t.gradients = add_gradients(t.program, sizes, gradient_types);
  const Math math{.accumulate = state};
  const Unscale unscaled = unscale(t.program, math, "unscale", t.scale, t.gradients);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string number = std::to_string(i);
    const auto kept = [&](const char* name, Role role) { return add(name + number, state, Shape{sizes[i]}, role); };
    const ValueId w = kept("w", Role::parameter), g = unscaled.gradients[i], m = kept("m", Role::state);
    const ValueId copy = add("c" + number, t.program.spec(t.gradients[i]).dtype, Shape{sizes[i]}, Role::parameter);
    if (i % 2 == 0) {
      t.sgd.push_back({w, g, m, copy});
    } else {
      t.adamw.push_back({w, g, m, kept("v", Role::state), copy});
    }
  }
  sgd(t.program, {.copies = true}, math, "sgd", t.lr, t.sgd, unscaled.found_inf);
  adamw(t.program, {.copies = true}, math, "adamw", t.lr, t.step, t.adamw, unscaled.found_inf);
  update_scale(t.program, {.interval = 3}, "update_scale", t.scale, t.tracker, unscaled.found_inf);
  return t;
}

/// `bad`: what the last gradient of the last tensor is, where given.
inline void set_state(ProgramRun& run, const ScaledTraining& t, double tracker, std::optional<double> bad = {}) {
  run.set(t.scale, std::vector<double>{1024});
  run.set(t.tracker, std::vector<double>{tracker});
  run.set(t.lr, std::vector<double>{0.125});
  run.set(t.step, std::vector<double>{3});
  for (std::size_t i = 0; i < t.gradients.size(); ++i) run.set_random(t.gradients[i], i, 0.5);
  if (bad) {
    std::vector<double> g = run.get(t.gradients.back());
    g.back() = *bad;
    run.set(t.gradients.back(), g);
  }
  std::uint64_t seed = 100;
  for (const SgdTensor& p : t.sgd) {
    for (const ValueId id : {p.weight, p.m, *p.copy}) run.set_random(id, ++seed, 0.02);
  }
  for (const AdamWTensor& p : t.adamw) {
    for (const ValueId id : {p.weight, p.m, p.v, *p.copy}) run.set_random(id, ++seed, 0.02);
    std::vector<double> v = run.get(p.v);
    for (double& value : v) value *= value;
    run.set(p.v, v);
  }
}

}  // namespace gpubench::testing
