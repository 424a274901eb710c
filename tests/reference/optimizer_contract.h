// What gradient norm, clip, loss scaling and the optimizers have to keep on every backend, over many tensors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "reference/ops/optimizer.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

/// Types of gradients, and of copies where there are any, by turns; weights, moments, scalars and sums in `state`.
struct TrainingTypes {
  std::vector<DType> gradients, copies;
  DType state = DType::f32;

  [[nodiscard]] Math math() const { return {.accumulate = state}; }
};

/// Tensors of these sizes, in each of these types.
struct Trainings {
  std::vector<std::int64_t> sizes;
  std::vector<TrainingTypes> types;
};

/// Which of them it was, for a message.
inline std::string told(const TrainingTypes& types) {
  std::string all = "gradients";
  for (const DType type : types.gradients) all += " " + std::string(name(type));
  return all + ", the rest " + std::string(name(types.state));
}

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

/// One AdamW step, with a limit one of clip_adamw; the learning rate is of type `lr` where given.
inline Training training(const AdamW& hyper, const std::vector<std::int64_t>& sizes, const TrainingTypes& types,
                         std::optional<double> limit = {}, std::optional<DType> lr = {}) {
  Training t;
  const DType state = types.state;
  if (limit) t.norm = t.program.add(tensor("norm", state, Shape{1}, Role::scalar));
  t.lr = t.program.add(tensor("lr", lr.value_or(state), Shape{1}, Role::scalar));
  t.step = t.program.add(tensor("step", DType::i32, Shape{1}, Role::scalar));
  for (const std::int64_t size : sizes) {
    const std::size_t index = t.tensors.size();
    const std::string number = std::to_string(index);
    const auto add = [&](const char* kind, DType dtype, Role role) {
      return t.program.add(tensor(kind + number, dtype, Shape{size}, role));
    };
    AdamWTensor parameter;
    parameter.weight = add("w", state, Role::parameter);
    parameter.gradient = add("g", types.gradients[index % types.gradients.size()], Role::gradient);
    parameter.m = add("m", state, Role::state);
    parameter.v = add("v", state, Role::state);
    if (hyper.copies) parameter.copy = add("c", types.copies[index % types.copies.size()], Role::parameter);
    t.tensors.push_back(parameter);
  }
  if (limit) {
    clip_adamw(t.program, {hyper, *limit}, types.math(), "op", *t.norm, t.lr, t.step, t.tensors);
  } else {
    adamw(t.program, hyper, types.math(), "op", t.lr, t.step, t.tensors);
  }
  return t;
}

/// Weights, gradients and moments as before step `step` of a training; `norm` is the input of clip_adamw.
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

/// One step of SGD or Lion.
template <class Hyper>
SgdTraining sgd_training(const Hyper& hyper, const std::vector<std::int64_t>& sizes, const TrainingTypes& types) {
  SgdTraining t;
  const DType state = types.state;
  t.lr = t.program.add(tensor("lr", state, Shape{1}, Role::scalar));
  for (const std::int64_t size : sizes) {
    const std::size_t index = t.tensors.size();
    const auto add = [&](const char* kind, DType dtype, Role role) {
      return t.program.add(tensor(kind + std::to_string(index), dtype, Shape{size}, role));
    };
    SgdTensor parameter{add("w", state, Role::parameter),
                        add("g", types.gradients[index % types.gradients.size()], Role::gradient),
                        add("m", state, Role::state),
                        {}};
    if (hyper.copies) parameter.copy = add("c", types.copies[index % types.copies.size()], Role::parameter);
    t.tensors.push_back(parameter);
  }
  if constexpr (std::is_same_v<Hyper, Lion>) {
    lion(t.program, hyper, types.math(), "op", t.lr, t.tensors);
  } else {
    sgd(t.program, hyper, types.math(), "op", t.lr, t.tensors);
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
inline ScaledTraining scaled_training(const std::vector<std::int64_t>& sizes, const TrainingTypes& types) {
  ScaledTraining t;
  const DType state = types.state;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape, Role role) {
    return t.program.add(tensor(name, dtype, shape, role));
  };
  t.scale = add("scale", state, Shape{1}, Role::scalar);
  t.tracker = add("tracker", DType::i32, Shape{1}, Role::scalar);
  t.lr = add("lr", state, Shape{1}, Role::scalar);
  t.step = add("step", DType::i32, Shape{1}, Role::scalar);
  t.gradients = add_gradients(t.program, sizes, types.gradients);
  const Math math = types.math();
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

inline void expect_bounds_of_gradient_norm(const BackendContract& on, const Trainings& all) {
  for (const TrainingTypes& types : all.types) {
    Program program;
    const std::vector<ValueId> ids = add_gradients(program, all.sizes, types.gradients);
    (void)gradient_norm(program, types.math(), "op", ids);
    ASSERT_EQ(program.spec(program.op(0).outputs[0]).dtype, types.state);
    const auto fill = [&](ProgramRun& run) {
      // Squares that only f64 can hold.
      for (const ValueId id : ids) run.set_random(id, id.index, types.state == DType::f64 ? 1e-60 : 0.01);
    };
    EXPECT_EQ(on.judge(program, fill), "") << told(types);
  }
}

/// 3-4-5 triangles whose squares leave the range of f32 at either end, apart and next to each other in one pack.
inline void expect_gradient_norm_in_range(const BackendContract& on) {
  for (const double scale : {1e30, 1e-30}) {
    for (const std::int64_t n : {2, 8}) {
      Program program;
      const ValueId g = program.add(tensor("g", DType::f32, Shape{n}, Role::gradient));
      const ValueId norm = gradient_norm(program, Math{}, "op", std::vector{g});
      ProgramRun run(on.backend, program);
      std::vector<double> values(static_cast<std::size_t>(n), 0.0);
      values[0] = 3 * scale;
      values[1] = 4 * scale;
      run.set(g, values);

      run.run();

      EXPECT_NEAR(run.get(norm)[0] / scale, 5.0, 1e-6);
    }
  }
}

inline void expect_bounds_of_clip(const BackendContract& on, const Trainings& all) {
  for (const TrainingTypes& types : all.types) {
    for (const double norm_value : {0.0, 0.5, 1.0, 3.7}) {
      Program program;
      const ValueId norm = program.add(tensor("norm", types.state, Shape{1}, Role::scalar));
      const std::vector<ValueId> ids = add_gradients(program, all.sizes, types.gradients);
      (void)clip(program, Clip{1.0}, types.math(), "op", norm, ids);
      const auto fill = [&](ProgramRun& run) {
        run.set(norm, std::vector<double>{norm_value});
        for (const ValueId id : ids) run.set_random(id, id.index, 0.01);
      };
      EXPECT_EQ(on.judge(program, fill), "") << told(types) << ", norm " << norm_value;
    }
  }
}

inline void expect_nan_norm_to_reach_every_gradient(const BackendContract& on) {
  Program program;
  const ValueId norm = program.add(tensor("norm", DType::f32, Shape{1}, Role::scalar));
  const ValueId g = program.add(tensor("g", DType::f32, Shape{100}, Role::gradient));
  const std::vector<ValueId> out = clip(program, Clip{1.0}, Math{}, "op", norm, std::vector{g});
  ProgramRun run(on.backend, program);
  run.set(norm, std::vector<double>{std::nan("")});
  run.set_random(g, 1);

  run.run();

  expect_nan_where(run.get(out[0]), [](std::size_t) { return true; });
}

inline void expect_bounds_of_adamw(const BackendContract& on, const Trainings& all) {
  for (const TrainingTypes& types : all.types) {
    for (const bool copies : {false, true}) {
      for (const DType lr : std::set{DType::f32, types.state}) {
        const Training t = training({.copies = copies}, all.sizes, types, {}, lr);
        for (const int step : {1, 2, 1000})
          EXPECT_EQ(on.judge(t.program, [&](ProgramRun& run) { set_state(run, t, step); }), "")
              << told(types) << ", copies " << copies << ", learning rate " << name(lr) << ", step " << step;
      }
    }
  }
}

inline void expect_bounds_of_clip_adamw(const BackendContract& on, const Trainings& all) {
  for (const TrainingTypes& types : all.types) {
    for (const bool copies : {false, true}) {
      const Training t = training({.copies = copies}, all.sizes, types, 1.0);
      for (const double norm : {0.5, 3.7})
        EXPECT_EQ(on.judge(t.program, [&](ProgramRun& run) { set_state(run, t, 2, norm); }), "")
            << told(types) << ", copies " << copies << ", norm " << norm;
    }
  }
}

inline void expect_nan_norm_to_reach_every_weight(const BackendContract& on) {
  const Training t = training({}, {100}, {{DType::f32}, {}}, 1.0);
  ProgramRun run(on.backend, t.program);
  set_state(run, t, 1, std::nan(""));

  run.run();

  expect_nan_where(run.get(t.tensors[0].weight), [](std::size_t) { return true; });
}

/// Adam: the decay is added to the gradient.
inline void expect_bounds_of_l2_adam(const BackendContract& on, const Trainings& all) {
  for (const TrainingTypes& types : all.types) {
    for (const std::optional<double> limit : {std::optional<double>{}, {1.0}}) {
      const Training t = training({.l2 = true}, all.sizes, types, limit);
      EXPECT_EQ(on.judge(t.program, [&](ProgramRun& run) { set_state(run, t, 2); }), "")
          << told(types) << ", clips " << limit.has_value();
    }
  }
}

/// SGD or Lion with each of `kinds`.
template <class Hyper>
void expect_bounds_of_one_moment(const BackendContract& on, const Trainings& all, const std::vector<Hyper>& kinds) {
  for (const TrainingTypes& types : all.types) {
    for (const Hyper& hyper : kinds) {
      const SgdTraining t = sgd_training(hyper, all.sizes, types);
      EXPECT_EQ(on.judge(t.program, [&](ProgramRun& run) { set_state(run, t); }), "")
          << told(types) << ", decay " << hyper.weight_decay << ", copies " << hyper.copies;
    }
  }
}

inline void expect_bounds_of_sgd(const BackendContract& on, const Trainings& all) {
  expect_bounds_of_one_moment<Sgd>(on, all,
                                   {{.weight_decay = 1e-4},
                                    {.nesterov = true, .copies = true},
                                    {.weight_decay = 1e-4, .nesterov = true, .copies = true}});
}

inline void expect_bounds_of_lion(const BackendContract& on, const Trainings& all) {
  expect_bounds_of_one_moment<Lion>(on, all, {{.weight_decay = 0.1}, {.weight_decay = 0.0, .copies = true}});
}

/// Tracker 1: the scale stays; 2: it grows. An infinite or NaN gradient: nothing changes but the scale, which halves.
inline void expect_bounds_of_loss_scaling(const BackendContract& on, const Trainings& all) {
  for (const TrainingTypes& types : all.types) {
    const ScaledTraining t = scaled_training(all.sizes, types);
    for (const auto& [bad, tracker] :
         {std::pair<std::optional<double>, double>{{}, 1}, {{}, 2}, {-INFINITY, 2}, {NAN, 1}}) {
      const auto fill = [&, b = bad, s = tracker](ProgramRun& run) { set_state(run, t, s, b); };
      EXPECT_EQ(on.judge(t.program, fill), "") << told(types) << ", tracker " << tracker;
      ProgramRun run(on.backend, t.program);
      fill(run);
      const std::vector<double> w = run.get(t.sgd[0].weight), v = run.get(t.adamw[0].v);

      run.run();

      EXPECT_EQ(run.get(t.sgd[0].weight) == w, bad.has_value());
      EXPECT_EQ(run.get(t.adamw[0].v) == v, bad.has_value());
      EXPECT_EQ(run.get(t.scale)[0], bad ? 512 : tracker == 2 ? 2048 : 1024);
      EXPECT_EQ(run.get(t.tracker)[0], !bad && tracker == 1 ? 2 : 0);
    }
  }
}

/// First step from zero moments: m' / bc1 = g and v' / bc2 = g^2, so w' = w - lr (sign(g) + weight_decay w).
inline void expect_first_step_by_the_learning_rate(const BackendContract& on) {
  const Training t = training({}, {2}, {{DType::f32}, {}});
  ProgramRun run(on.backend, t.program);
  run.set(t.lr, std::vector<double>{0.5});
  run.set(t.step, std::vector<double>{1});
  run.set(t.tensors[0].weight, std::vector<double>{1.0, 1.0});
  run.set(t.tensors[0].gradient, std::vector<double>{4.0, -4.0});
  run.set(t.tensors[0].m, std::vector<double>{0.0, 0.0});
  run.set(t.tensors[0].v, std::vector<double>{0.0, 0.0});

  run.run();

  const std::vector<double> w = run.get(t.tensors[0].weight);
  EXPECT_NEAR(w[0], 1.0 - 0.5 * (1.0 + 0.1), 1e-6);
  EXPECT_NEAR(w[1], 1.0 - 0.5 * (-1.0 + 0.1), 1e-6);
}

/// The step and the learning rate are tensors: each run of a bound launch reads them.
inline void expect_a_changed_learning_rate_to_count(const BackendContract& on) {
  const Training t = training({}, {5}, {{DType::f32}, {}});
  ProgramRun run(on.backend, t.program);
  set_state(run, t, 1);
  run.run();
  const std::vector<double> after_one = run.get(t.tensors[0].weight);

  run.set(t.lr, std::vector<double>{0.0});
  run.run_again();

  EXPECT_EQ(run.get(t.tensors[0].weight), after_one);
}

}  // namespace gpubench::testing
