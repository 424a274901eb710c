// Programs of attention with masks, softcap and sinks, for the tests of every backend: one op each, forward or
// backward.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/tensor_checks.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

struct AttentionVariant {
  const char* name;
  AttentionExtents extents;  // d_v: 0 for d
  Attention attention;
  bool sinks = false;
  std::vector<double> documents{};  // the same for every batch entry

  [[nodiscard]] std::int64_t value_width() const { return extents.d_v == 0 ? extents.d : extents.d_v; }
};

struct AttentionProgram {
  Program program;
  ValueId q, k, v;
  AttentionOptions options;
  std::optional<ValueId> d_o{}, o{}, lse{};  // backward

  AttentionProgram(const AttentionVariant& x, DType type) {
    const AttentionExtents& e = x.extents;
    q = program.add(tensor("q", type, {e.b, e.s, e.hq, e.d}, Role::activation));
    k = program.add(tensor("k", type, {e.b, e.t, e.hkv, e.d}, Role::activation));
    v = program.add(tensor("v", type, {e.b, e.t, e.hkv, x.value_width()}, Role::activation));
    if (x.sinks) options.sinks = program.add(tensor("sinks", DType::f32, {e.hq}, Role::parameter));
    if (!x.documents.empty()) {
      const auto boundaries = static_cast<std::int64_t>(x.documents.size());
      options.documents = program.add(tensor("documents", DType::i32, {e.b, boundaries}, Role::input));
    }
  }
};

inline AttentionProgram forward_program(const AttentionVariant& x, DType type) {
  AttentionProgram made(x, type);
  attention_forward(made.program, x.attention, Math{}, "forward", made.q, made.k, made.v, made.options);
  return made;
}

inline AttentionProgram backward_program(const AttentionVariant& x, DType type) {
  const AttentionExtents& e = x.extents;
  AttentionProgram made(x, type);
  made.d_o = made.program.add(tensor("do", type, {e.b, e.s, e.hq, x.value_width()}, Role::gradient));
  made.o = made.program.add(tensor("o", type, {e.b, e.s, e.hq, x.value_width()}, Role::activation));
  made.lse = made.program.add(tensor("lse", DType::f32, {e.b, e.hq, e.s}, Role::statistic));
  attention_backward(made.program, x.attention, Math{}, "backward", *made.d_o, made.q, made.k, made.v, *made.o,
                     *made.lse, made.options);
  return made;
}

/// o and lse are read as given: lse near the logarithm of some tens of keys.
inline void fill(ProgramRun& run, const AttentionProgram& made, const AttentionVariant& x) {
  run.set_random(made.q, 1);
  run.set_random(made.k, 2);
  run.set_random(made.v, 3);
  if (made.options.sinks) run.set_random(*made.options.sinks, 4, 2.0);
  if (made.options.documents) {
    std::vector<double> all;
    for (std::int64_t batch = 0; batch < x.extents.b; ++batch)
      all.insert(all.end(), x.documents.begin(), x.documents.end());
    run.set(*made.options.documents, all);
  }
  if (!made.lse) return;
  run.set_random(*made.d_o, 5);
  run.set_random(*made.o, 6);
  run.set_random(*made.lse, 7, 0.25);
  std::vector<double> moved = run.get(*made.lse);
  for (double& value : moved) value += 3.0;
  run.set(*made.lse, moved);
}

/// Two parts of attention, joined: random, the second part's rows by turns far below, alike and far above the first's.
/// Every fifth row sees no key of the first part, every seventh none of the second.
struct MergeProgram {
  Program program;
  AttentionForward one, other;

  MergeProgram(DType type, const Shape& shape) {
    const auto part = [&](const std::string& name) {
      const Shape rows{shape[0], shape[2], shape[1]};
      return AttentionForward{program.add(tensor(name + ".o", type, shape, Role::activation)),
                              program.add(tensor(name + ".lse", statistic_type(type), rows, Role::statistic))};
    };
    one = part("one");
    other = part("other");
    Math math;
    if (type == DType::f64) math.accumulate = DType::f64;
    attention_merge(program, math, "op", one, other);
  }
};

inline void fill(ProgramRun& run, const MergeProgram& p) {
  for (const AttentionForward& each : {p.one, p.other}) {
    run.set_random(each.o, each.o == p.one.o ? 1 : 2);
    run.set_random(each.lse, each.o == p.one.o ? 3 : 4);
  }
  std::vector<double> first = run.get(p.one.lse), second = run.get(p.other.lse);
  for (std::size_t i = 0; i < second.size(); ++i) {
    second[i] += 40.0 * (static_cast<double>(i % 3) - 1.0);
    if (i % 5 == 4) first[i] = -HUGE_VAL;
    if (i % 7 == 6) second[i] = -HUGE_VAL;
  }
  run.set(p.one.lse, first);
  run.set(p.other.lse, second);
}

}  // namespace gpubench::testing
