// What attention has to keep on every backend: masks, softcap and sinks, heads of packed tokens, NaN where it is seen
// only, and attention to parts of the keys, joined.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/tensor_checks.h"
#include "tests/reference/backend_contract.h"

namespace gpubench::testing {

struct AttentionVariant {
  const char* name;
  AttentionExtents extents;  // d_v: 0 for d
  Attention attention;
  bool sinks = false;
  std::vector<double> documents{};  ///< the same for every batch entry
  /// q, k and v are parts of one tensor, from this element of each token on; their gradients are, too.
  std::optional<std::int64_t> packed_from{};
};

/// Backward reads o and lse as given, or `chained` those of the forward before it.
enum class AttentionPasses { forward, backward, chained };

struct AttentionProgram {
  AttentionVariant variant;
  Program program;
  ValueId q, k, v, o, lse;
  AttentionOptions options;
  AttentionBackward gradients{};
  std::vector<ValueId> filled;  ///< at random
  bool lse_is_given;

  AttentionProgram(const AttentionVariant& x, DType type, AttentionPasses passes)
      : variant(x), lse_is_given(passes == AttentionPasses::backward) {
    const AttentionExtents& e = x.extents;
    const std::int64_t d_v = e.d_v == 0 ? e.d : e.d_v;
    const auto add = [&](const char* name, const Shape& shape) {
      return filled.emplace_back(program.add(tensor(name, type, shape, Role::activation)));
    };
    AttentionGradients into;
    if (x.packed_from) {
      const std::int64_t width = *x.packed_from + (e.hq + 2 * e.hkv) * e.d;
      const auto part = [&](ValueId whole, const char* name, std::int64_t heads, std::int64_t first_head) {
        TensorSpec spec = tensor(name, type, {e.b, e.s, heads, e.d}, Role::activation);
        spec.layout.strides = {e.s * width, width, e.d, 1};
        return program.part(whole, spec, *x.packed_from + first_head * e.d);
      };
      const ValueId packed = add("packed", {e.b, e.s, width});
      q = part(packed, "q", e.hq, 0);
      k = part(packed, "k", e.hkv, e.hq);
      v = part(packed, "v", e.hkv, e.hq + e.hkv);
      if (passes != AttentionPasses::forward) {
        const ValueId whole = program.reserve(tensor("gradient", type, {e.b, e.s, width}, Role::gradient));
        into = {part(whole, "dq", e.hq, 0), part(whole, "dk", e.hkv, e.hq), part(whole, "dv", e.hkv, e.hq + e.hkv), {}};
      }
    } else {
      q = add("q", {e.b, e.s, e.hq, e.d});
      k = add("k", {e.b, e.t, e.hkv, e.d});
      v = add("v", {e.b, e.t, e.hkv, d_v});
    }
    if (x.sinks) options.sinks = program.add(tensor("sinks", DType::f32, {e.hq}, Role::parameter));
    if (!x.documents.empty()) {
      const auto boundaries = static_cast<std::int64_t>(x.documents.size());
      options.documents = program.add(tensor("documents", DType::i32, {e.b, boundaries}, Role::input));
    }
    if (lse_is_given) {
      o = add("o", {e.b, e.s, e.hq, d_v});
      lse = program.add(tensor("lse", DType::f32, {e.b, e.hq, e.s}, Role::statistic));
    } else {
      const AttentionForward out = attention_forward(program, x.attention, Math{}, "forward", q, k, v, options);
      o = out.o;
      lse = out.lse;
    }
    if (passes == AttentionPasses::forward) return;
    const ValueId d_o = add("do", {e.b, e.s, e.hq, d_v});
    gradients = attention_backward(program, x.attention, Math{}, "backward", d_o, q, k, v, o, lse, options, into);
  }
};

/// A given lse is near the logarithm of some tens of keys.
inline void fill(ProgramRun& run, const AttentionProgram& p) {
  std::uint64_t seed = 1;
  for (const ValueId id : p.filled) run.set_random(id, seed++);
  if (p.options.sinks) run.set_random(*p.options.sinks, seed++, 2.0);
  if (p.options.documents) {
    std::vector<double> all;
    for (std::int64_t batch = 0; batch < p.variant.extents.b; ++batch)
      all.insert(all.end(), p.variant.documents.begin(), p.variant.documents.end());
    run.set(*p.options.documents, all);
  }
  if (!p.lse_is_given) return;
  run.set_random(p.lse, seed, 0.25);
  std::vector<double> moved = run.get(p.lse);
  for (double& value : moved) value += 3.0;
  run.set(p.lse, moved);
}

/// Every mask, softcap and sinks; of `n` tokens, a block and a bit, and of `far` ones.
inline std::vector<AttentionVariant> attention_variants(std::int64_t n, std::int64_t far) {
  constexpr double scale = 0.25;
  const auto end = static_cast<double>(n), last = static_cast<double>(far);
  return {
      {"one query, one key", {1, 1, 1, 1, 8, 1}, {.scale = scale}},
      {"whole blocks", {1, 64, 1, 1, 16, 64}, {.scale = scale}},
      {"grouped queries", {2, 67, 6, 2, 16, 67}, {.scale = scale}},
      {"full", {1, n, 2, 2, 16, n}, {.causal = false, .scale = scale}},
      {"window", {1, far, 1, 1, 16, far}, {.scale = scale, .window = 70}},
      {"window of one", {1, 70, 2, 1, 16, 70}, {.scale = scale, .window = 1}},
      {"fewer queries", {1, 33, 2, 1, 16, far}, {.scale = scale}},
      {"one query", {2, 1, 4, 2, 16, far}, {.scale = scale}},
      {"full, fewer queries", {1, 33, 2, 2, 16, n}, {.causal = false, .scale = scale}},
      {"keys that no query sees", {1, 20, 1, 1, 16, far}, {.scale = scale, .window = 30}},
      {"more queries than keys", {1, far, 2, 1, 16, n / 2}, {.scale = scale}},
      {"more queries than keys, window", {1, far, 1, 1, 16, 20}, {.scale = scale, .window = 7}},
      {"more queries than keys, sinks", {1, far, 2, 2, 16, n / 2}, {.scale = scale}, true},
      {"full, fewer keys", {1, n, 1, 1, 16, 33}, {.causal = false, .scale = scale}},
      {"softcap", {1, n, 2, 1, 16, n}, {.scale = scale, .softcap = 1.5}},
      {"softcap of Gemma", {1, n, 1, 1, 16, n}, {.scale = 4.0, .softcap = 50.0}},
      {"sinks", {2, n, 4, 2, 16, n}, {.scale = scale}, true},
      {"documents", {1, far, 1, 1, 16, far}, {.scale = scale}, false, {0, 1, 65, 65, end + 20, last - 50, last}},
      {"full documents", {1, far, 1, 1, 16, far}, {.causal = false, .scale = scale}, false, {0, 50, last - 40, last}},
      {"boundaries outside", {1, n, 1, 1, 16, n}, {.scale = scale}, false, {-5, 30, 4000}},
      {"narrower values", {1, n, 2, 1, 72, n, 40}, {.scale = scale}},
      {"wider values", {1, 33, 2, 2, 24, far, 70}, {.scale = scale}},
      {"all", {2, n, 4, 2, 24, n}, {.scale = scale, .window = 40, .softcap = 3.0}, true, {0, 45, end}},
  };
}

/// Head sizes that fill vectors, packs and kernels' tiles or don't; and heads in packed tokens, at addresses that packs
/// fit and don't.
inline std::vector<AttentionVariant> attention_heads() {
  std::vector<AttentionVariant> all;
  for (const std::int64_t d : {1, 33, 64, 72, 128, 130, 200, 256})
    all.push_back({"head size", {1, 20, 2, 1, d, 20}, {.scale = 1.0 / std::sqrt(static_cast<double>(d))}});
  for (const std::int64_t first : {16, 17})
    all.push_back({"packed", {2, 40, 4, 2, 16, 40}, {.scale = 0.25}, false, {}, first});
  return all;
}

inline void expect_bounds_of_attention(const BackendContract& on, const std::vector<AttentionVariant>& variants,
                                       const std::vector<DType>& types,
                                       const std::vector<AttentionPasses>& passes = {AttentionPasses::forward,
                                                                                     AttentionPasses::backward}) {
  for (const AttentionVariant& x : variants) {
    for (const DType type : types) {
      for (const AttentionPasses each : passes) {
        const AttentionProgram p(x, type, each);
        EXPECT_EQ(on.judge(p.program, [&](ProgramRun& run) { fill(run, p); }), "") << x.name << p.program.to_string();
      }
    }
  }
}

/// Each key is parallel to the query before it, and huge: were it seen, it would take all the mass. The exponential of
/// such a score overflows.
inline void expect_no_key_beyond_the_diagonal(const BackendContract& on) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const AttentionProgram p({"", {1, 140, 1, 1, 16, 140}, {.scale = 0.25}}, type, AttentionPasses::forward);
    const auto fill_huge = [&](ProgramRun& run) {
      fill(run, p);
      std::vector<double> k = run.get(p.k);
      const std::vector<double> q = run.get(p.q);
      for (std::size_t i = 16; i < k.size(); ++i) k[i] = 1000.0 * q[i - 16];
      run.set(p.k, k);
    };
    EXPECT_EQ(on.judge(p.program, fill_huge), "") << name(type);
  }
}

/// A query that is NaN through its log-sum-exp reaches the gradients of every key that it sees: all up to the last.
inline void expect_a_nan_key_to_reach_what_sees_it(const BackendContract& on) {
  constexpr std::size_t d = 16, bad = 70;
  for (const DType type : {DType::f32, DType::bf16}) {
    const AttentionProgram p({"", {1, 140, 1, 1, d, 140}, {.scale = 0.25}}, type, AttentionPasses::chained);
    ProgramRun run(on.backend, p.program);
    fill(run, p);
    spoil(run, p.k, bad * d + 3);

    run.run();

    expect_nan_where(run.get(p.lse), [](std::size_t query) { return query >= bad; });
    expect_nan_where(run.get(p.o), [](std::size_t i) { return i / d >= bad; });
    expect_nan_where(run.get(p.gradients.dv), [](std::size_t) { return true; });
  }
}

/// A weight of 0 times a value that is NaN or infinite is NaN: masked values must not be multiplied. With a wrong value
/// at one place of `s`, what does not see it may move by `apart`.
inline void expect_a_wrong_value_to_reach_what_sees_it(const BackendContract& on, std::int64_t s, std::int64_t place,
                                                       double apart) {
  const std::vector<double> document{0.0, static_cast<double>(place < 2 ? 0 : place - 2),
                                     static_cast<double>(place + 20)};
  for (const std::int64_t d : {16, 15}) {
    for (const AttentionVariant& x :
         std::vector<AttentionVariant>{{"causal", {1, s, 1, 1, d, s}, {.scale = 0.25}},
                                       {"full", {1, s, 1, 1, d, s}, {.causal = false, .scale = 0.25}},
                                       {"window", {1, s, 1, 1, d, s}, {.scale = 0.25, .window = 20}},
                                       {"document", {1, s, 1, 1, d, s}, {.scale = 0.25}, false, document}}) {
      const bool cut = x.attention.window > 0 || !x.documents.empty();
      const std::int64_t first = x.attention.causal ? place : 0, end = cut ? std::min(s, place + 20) : s;
      for (const DType type : {DType::f32, DType::bf16}) {
        const AttentionProgram p(x, type, AttentionPasses::forward);
        ProgramRun right(on.backend, p.program);
        fill(right, p);
        right.run();
        const std::vector<double> want = right.get(p.o);
        for (const double wrong : {std::nan(""), HUGE_VAL}) {
          ProgramRun run(on.backend, p.program);
          fill(run, p);
          std::vector<double> v = run.get(p.v);
          v[static_cast<std::size_t>(place * d + 3)] = wrong;
          run.set(p.v, v);

          run.run();

          for (const double lse : run.get(p.lse)) ASSERT_TRUE(std::isfinite(lse)) << x.name;
          const std::vector<double> got = run.get(p.o);
          for (std::int64_t i = 0; i < s * d; ++i) {
            const double value = got[static_cast<std::size_t>(i)];
            const bool sees = i % d == 3 && i / d >= first && i / d < end;
            ASSERT_TRUE(sees ? std::isnan(wrong) ? std::isnan(value) : value == wrong
                             : std::abs(value - want[static_cast<std::size_t>(i)]) <= apart)
                << x.name << ", heads of " << d << ", " << name(type) << ", " << wrong << " at " << place << ", query "
                << i / d << ", column " << i % d << ": " << value;
          }
        }
      }
    }
  }
}

/// Two parts of attention, joined: random, the second part's rows by turns far below, alike and far above the first's.
/// Every fifth row sees no key of the first part, every seventh none of the second.
inline void expect_bounds_of_merged_parts(const BackendContract& on, const std::vector<DType>& types,
                                          const std::vector<Shape>& shapes) {
  for (const DType type : types) {
    for (const Shape& shape : shapes) {
      Program program;
      const auto part = [&](const std::string& name) {
        const Shape rows{shape[0], shape[2], shape[1]};
        return AttentionForward{program.add(tensor(name + ".o", type, shape, Role::activation)),
                                program.add(tensor(name + ".lse", statistic_type(type), rows, Role::statistic))};
      };
      const AttentionForward one = part("one"), other = part("other");
      attention_merge(program, math_for(type), "op", one, other);
      const auto fill_parts = [&](ProgramRun& run) {
        std::uint64_t seed = 1;
        for (const ValueId id : {one.o, other.o, one.lse, other.lse}) run.set_random(id, seed++);
        std::vector<double> first = run.get(one.lse), second = run.get(other.lse);
        for (std::size_t i = 0; i < second.size(); ++i) {
          second[i] += 40.0 * (static_cast<double>(i % 3) - 1.0);
          if (i % 5 == 4) first[i] = -HUGE_VAL;
          if (i % 7 == 6) second[i] = -HUGE_VAL;
        }
        run.set(one.lse, first);
        run.set(other.lse, second);
      };
      EXPECT_EQ(on.judge(program, fill_parts), "") << name(type) << ' ' << shape.to_string();
    }
  }
}

}  // namespace gpubench::testing
