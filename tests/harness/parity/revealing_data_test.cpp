#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/parity/fill.h"
#include "harness/parity/judge.h"
#include "harness/parity/textbook_outputs.h"
#include "reference/ops/attention.h"
#include "reference/ops/attention_textbook.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/optimizer.h"

namespace gpubench {
namespace revealing_data_test {

/// One op with one of its revealing data, and the correct outputs.
class Revealed {
 public:
  /// `name`: of the data; empty for the first. Throws std::out_of_range where the op has none of that name.
  explicit Revealed(Program program, std::string_view name = {}) : program_(std::move(program)) {
    for (const ValueId id : call().inputs) {
      specs_.push_back(program_.spec(id));
      fill(specs_.back(), "test/case", 42, inputs.emplace_back(specs_.back()).bytes);
    }
    for (const ValueId id : call().outputs) outputs_.push_back(program_.spec(id));
    const std::vector<RevealingData> all = definition(call().kind).revealing_data({call(), specs_, outputs_});
    const auto named = [name](const RevealingData& one) { return name.empty() || one.name == name; };
    const RevealingData& data = all.at(static_cast<std::size_t>(std::ranges::find_if(all, named) - all.begin()));
    for (const RevealingData::Input& input : data.inputs) fill(inputs[input.index], input);
    sums_ = sums_of(data);
    left = textbook_outputs({call(), views_of(inputs), outputs_});
  }
  [[nodiscard]] const OpCall& call() const { return program_.op(0); }
  [[nodiscard]] bool is_exact() const { return sums_.exact; }
  /// The textbook's values of an output, from all terms of the sums or, on sparse data, from the few nonzero ones.
  [[nodiscard]] std::vector<Expected> expected(int output, bool sparse) const {
    const std::vector<TensorView> given = views_of(inputs);
    const CheckUnits units = definition(call().kind).units({call(), specs_, outputs_}, output);
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(units.count));
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<Expected> all(static_cast<std::size_t>(units.count * units.elements));
    definition(call().kind).evaluate({call(), given, outputs_, {}, false, sparse}, output, wanted, all);
    return all;
  }
  [[nodiscard]] std::vector<HostTensor> with(const std::vector<HostTensor>& other) const {
    return textbook_outputs({call(), views_of(other), outputs_});
  }
  [[nodiscard]] Verdict judged(std::vector<HostTensor> outputs) const {
    const CheckMode mode = sums_.sparse ? CheckMode::sample : CheckMode::full;
    return judge(program_, 0, {views_of(inputs), views_of(outputs)}, {mode, 0, 1, 2, sums_}, "special").verdict;
  }
  [[nodiscard]] Verdict judged(const std::function<void(std::vector<HostTensor>&)>& change) const {
    std::vector<HostTensor> outputs = left;
    change(outputs);
    return judged(std::move(outputs));
  }
  [[nodiscard]] Verdict scaled(std::size_t output, double factor) const {
    return judged([&](std::vector<HostTensor>& outputs) {
      for (std::int64_t e = 0; e < outputs[output].elements(); ++e)
        outputs[output].set(e, factor * outputs[output].get(e));
    });
  }

  std::vector<HostTensor> inputs, left;

 private:
  Program program_;
  std::vector<TensorSpec> specs_, outputs_;
  SumsOfData sums_;
};

Program loss(DType type, std::int64_t rows, std::int64_t classes) {
  Program p;
  const ValueId logits = p.add(tensor("logits", type, {rows, classes}, Role::activation, Fill::normal(1.0)));
  const ValueId labels = p.add(tensor("labels", DType::i32, {rows}, Role::input, Fill::integers(0, classes - 1)));
  cross_entropy_forward(p, Math{}, "loss", logits, labels);
  return p;
}

TEST(RevealingData, ShowsThatTheLastOfFiftyThousandClassesWasLeftOut) {
  const Revealed op(loss(DType::bf16, 4, 50'304));
  EXPECT_EQ(op.judged(op.left), Verdict::pass);
  std::vector<HostTensor> others = op.inputs;
  for (std::int64_t row = 0; row < 4; ++row) others[0].set((row + 1) * 50'304 - 1, -1e30);
  EXPECT_EQ(op.judged(op.with(others)), Verdict::fail);
}

TEST(RevealingData, ShowsAMeanOfAPowerOfTwoOfLossesThatIsOffBy2ToTheMinus18) {
  const Revealed op(loss(DType::f32, 4096, 16));
  EXPECT_TRUE(op.is_exact());
  EXPECT_EQ(op.judged(op.left), Verdict::pass);
  EXPECT_EQ(op.scaled(0, 1.0 + 0x1p-18), Verdict::fail);
  // Summed in f32 one by one, or each divided before.
  float sum = 0.0F, mean = 0.0F;
  for (std::int64_t row = 0; row < 4096; ++row) {
    const double one =
        op.left[1].get(row) - op.inputs[0].get(row * 16 + static_cast<std::int64_t>(op.inputs[1].get(row)));
    sum += static_cast<float>(one);
    mean += static_cast<float>(one) / 4096.0F;
  }
  for (const float right : {sum / 4096.0F, mean})
    EXPECT_EQ(op.judged([&](auto& outputs) { outputs[0].set(0, right); }), Verdict::pass);
  EXPECT_FALSE(Revealed(loss(DType::f32, 48, 16)).is_exact());  // there a mean may be rounded on its way
}

TEST(RevealingData, ShowsAnyEndOfAGradientLeftOutOfTheNorm) {
  Program p;
  std::vector<ValueId> gradients;
  for (const std::int64_t n : {100'003, 1, 40'000})
    gradients.push_back(p.add(tensor(p.unique_name("g"), DType::f32, {n}, Role::gradient, Fill::normal(1.0))));
  gradient_norm(p, Math{}, "norm", gradients);
  const Revealed op(std::move(p));
  EXPECT_EQ(op.judged(op.left), Verdict::pass);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::int64_t end : {std::int64_t{0}, op.inputs[i].elements() - 1}) {
      std::vector<HostTensor> others = op.inputs;
      others[i].set(end, 0.0);
      EXPECT_EQ(op.judged(op.with(others)), Verdict::fail) << i << " " << end;
    }
  }
}

TEST(RevealingData, ShowsTheTinyNumberLeftOutOfAClippedGradient) {
  Program p;
  const ValueId norm = p.add(tensor("norm", DType::f32, {1}, Role::scalar, Fill::constant(4.0)));
  const ValueId g = p.add(tensor("g", DType::f32, {1000}, Role::gradient, Fill::normal(1.0)));
  const std::vector<ValueId> gradients{g};
  clip(p, {}, Math{}, "clip", norm, gradients);
  const Revealed op(std::move(p));
  EXPECT_EQ(op.judged(op.left), Verdict::pass);
  const double factor = Clip{}.limit / op.inputs[0].get(0);
  ASSERT_LT(factor, 1.0);
  EXPECT_EQ(op.judged([&](auto& outputs) {
    for (std::int64_t e = 0; e < 1000; ++e) outputs[0].set(e, factor * op.inputs[1].get(e));
  }),
            Verdict::fail);
}

TEST(RevealingData, ShowsAnOverflowThatWasNotNoticed) {
  for (const std::string_view which : {"an infinite gradient", "a gradient that is NaN"}) {
    Program p;
    const ValueId scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(1024.0)));
    const std::vector<ValueId> gradients{p.add(tensor("g", DType::f16, {100}, Role::gradient, Fill::normal(1.0))),
                                         p.add(tensor("h", DType::f16, {77}, Role::gradient, Fill::normal(1.0)))};
    unscale(p, Math{}, "unscale", scale, gradients);
    const Revealed op(std::move(p), which);
    EXPECT_EQ(op.left[0].get(0), 1.0);
    EXPECT_EQ(op.judged(op.left), Verdict::pass);
    EXPECT_EQ(op.judged([](auto& outputs) { outputs[0].set(0, 0.0); }), Verdict::fail);
  }
}

TEST(RevealingData, ShowsAStepThatIsTakenThoughItIsToBeSkipped) {
  Program p;
  const auto one = [&](const char* name, double value) {
    return p.add(tensor(name, DType::f32, {1}, Role::scalar, Fill::constant(value)));
  };
  const ValueId lr = one("lr", 1e-3);
  const ValueId step = p.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(1.0)));
  const ValueId found = one("found_inf", 0.0);
  const auto f32 = [&](const char* name, Role role, const Fill& how) {
    return p.add(tensor(name, DType::f32, {50}, role, how));
  };
  AdamWTensor weight{f32("w", Role::parameter, Fill::normal(1.0)),
                     f32("g", Role::gradient, Fill::normal(1.0)),
                     f32("m", Role::state, Fill::normal(1.0)),
                     f32("v", Role::state, Fill::positive(1.0)),
                     {}};
  const std::vector<AdamWTensor> tensors{weight};
  adamw(p, {}, Math{}, "adamw", lr, step, tensors, found);
  const Revealed op(std::move(p), "a step to be skipped");
  EXPECT_EQ(op.judged(op.left), Verdict::pass);
  std::vector<HostTensor> as_usual = op.inputs;
  for (HostTensor& input : as_usual) {
    if (input.spec.name == "found_inf") input.set(0, 0.0);
  }
  EXPECT_EQ(op.judged(op.with(as_usual)), Verdict::fail);
}

Program attention(DType type, bool causal) {
  Program p;
  const Shape shape{1, 64, 2, 32};
  const auto add = [&](const char* name) {
    return p.add(tensor(name, type, shape, Role::activation, Fill::normal(1.0)));
  };
  Attention attributes;
  attributes.causal = causal;
  attributes.scale = 0.125;
  const ValueId q = add("q"), k = add("k"), v = add("v");
  attention_forward(p, attributes, Math{}, "attention", q, k, v);
  return p;
}

TEST(RevealingData, ShowsAttentionThatIsOffBy2ToTheMinus18) {
  for (const bool causal : {false, true}) {
    const Revealed op(attention(DType::f32, causal));
    EXPECT_TRUE(op.is_exact());
    EXPECT_EQ(op.judged(op.left), Verdict::pass);
    EXPECT_EQ(op.scaled(0, 1.0 + 0x1p-18), Verdict::fail);
    EXPECT_EQ(op.scaled(1, 1.0 + 0x1p-18), Verdict::fail);  // the log-sum-exp
  }
}

TEST(RevealingData, AcceptsAttentionThatNormalizesFirst) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Revealed op(attention(type, true));
    const std::int64_t rows = 64, heads = 2, d = 32;
    EXPECT_EQ(op.judged([&](std::vector<HostTensor>& outputs) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const double p = round_to(type, round_to(DType::f32, 1.0 / static_cast<double>(row + 1)));
        for (std::int64_t e = 0; e < heads * d; ++e) {
          float sum = 0.0F;
          for (std::int64_t key = row; key >= 0; --key)
            sum += static_cast<float>(p * op.inputs[2].get(key * heads * d + e));
          outputs[0].set(row * heads * d + e, sum);
        }
      }
    }),
              Verdict::pass)
        << name(type);
  }
}

struct OneKey {
  std::string name;
  Attention attributes;
  std::int64_t s, t, hq, hkv, d, d_v;
  DType type = DType::f32;
  bool sinks = false, documents = false;
  Math math{};
};

const std::vector<OneKey>& one_key_cases() {
  static const std::vector<OneKey> all{
      {"full", {false, 0.125}, 40, 40, 2, 2, 64, 64},
      {"cross", {false, 0.125}, 40, 56, 2, 2, 64, 64},
      {"causal", {true, 0.125}, 48, 48, 2, 2, 64, 64},
      {"causal_bf16", {true, 0.125}, 48, 48, 2, 2, 64, 64, DType::bf16},
      {"causal_f16", {true, 0.125}, 48, 48, 2, 2, 64, 64, DType::f16},
      {"negative_scale", {true, -0.125}, 48, 48, 2, 2, 64, 64},
      {"chunk", {true, 0.125}, 24, 56, 2, 2, 64, 64},
      {"window", {true, 0.125, 7}, 48, 48, 2, 2, 64, 64},
      {"grouped", {true, 0.1}, 48, 48, 6, 2, 24, 40},
      {"sinks", {true, 0.125}, 48, 48, 2, 1, 64, 64, DType::f32, true},
      {"documents", {true, 0.125}, 48, 48, 2, 2, 64, 64, DType::f32, false, true},
      {"tf32", {true, 0.125}, 48, 48, 2, 2, 64, 64, DType::f32, false, false, {.inputs = Math::Inputs::tf32}},
  };
  return all;
}

Program one_key_program(const OneKey& c, bool backward) {
  Program p;
  const auto add = [&](const char* name, std::int64_t rows, std::int64_t heads, std::int64_t d) {
    return p.add(tensor(name, c.type, {2, rows, heads, d}, Role::activation, Fill::normal(1.0)));
  };
  const ValueId q = add("q", c.s, c.hq, c.d), k = add("k", c.t, c.hkv, c.d), v = add("v", c.t, c.hkv, c.d_v);
  AttentionOptions options;
  if (c.sinks) options.sinks = p.add(tensor("sinks", DType::f32, {c.hq}, Role::parameter, Fill::normal(1.0)));
  if (c.documents)
    options.documents = p.add(tensor("documents", DType::i32, {2, 4}, Role::input, Fill::boundaries(c.s)));
  if (!backward) {
    attention_forward(p, c.attributes, c.math, "attention", q, k, v, options);
    return p;
  }
  const ValueId d_o = add("do", c.s, c.hq, c.d_v), o = add("o", c.s, c.hq, c.d_v);
  const ValueId lse = p.add(tensor("lse", DType::f32, {2, c.hq, c.s}, Role::statistic, Fill::normal(1.0)));
  attention_backward(p, c.attributes, c.math, "attention", d_o, q, k, v, o, lse, options);
  return p;
}

class AttentionToOneKey : public testing::TestWithParam<OneKey> {
 protected:
  [[nodiscard]] static Revealed revealed(bool backward) {
    return Revealed(one_key_program(GetParam(), backward), "one key");
  }
};

TEST_P(AttentionToOneKey, IsWhatTheTextbookSaysOfAllKeys) {
  for (const bool backward : {false, true}) {
    const Revealed op = revealed(backward);
    EXPECT_EQ(op.judged(op.left), Verdict::pass);
    for (int output = 0; output < static_cast<int>(op.left.size()); ++output) {
      const std::vector<Expected> few = op.expected(output, true), all = op.expected(output, false);
      bool is_zero = true;
      for (std::size_t e = 0; e < all.size(); ++e) {
        ASSERT_NEAR(few[e].value, all[e].value, 1e-12 * std::fabs(all[e].value) + 1e-40) << output << " " << e;
        EXPECT_LE(few[e].bound, all[e].bound + 1e-25) << output << " " << e;  // fewer terms, fewer roundings
        is_zero = is_zero && std::fabs(all[e].value) < 1e-40;
      }
      EXPECT_EQ(is_zero, op.left[static_cast<std::size_t>(output)].spec.name == "attention.dsinks");
    }
  }
}

TEST_P(AttentionToOneKey, ShowsEveryElementThatIsWrong) {
  for (const bool backward : {false, true}) {
    const Revealed op = revealed(backward);
    for (std::size_t output = 0; output < (backward ? 3U : 1U); ++output) {
      const std::int64_t count = op.left[output].elements();
      for (std::int64_t e = 0; e < count; e += 1 + count / 11) {
        const double was = op.left[output].get(e);
        const bool is_zero = std::fabs(was) < 1e-9;  // as what cancels is
        for (const double wrong : {is_zero ? 16.0 : 1.02 * was, is_zero ? -16.0 : -was})
          EXPECT_EQ(op.judged([&](auto& outputs) { outputs[output].set(e, wrong); }), Verdict::fail)
              << output << " " << e << " " << wrong;
      }
    }
  }
}

// The key is not seen: a query that attends to it has another one key.
TEST_P(AttentionToOneKey, ShowsAKeyLeftOutWhereAQueryAttendsToIt) {
  const Revealed op = revealed(false);
  const OneKey& c = GetParam();
  const AttentionExtents extents{2, c.s, c.hq, c.hkv, c.d, c.t, c.d_v};
  for (std::int64_t key = 0; key < c.t; key += 5) {
    bool is_attended = false;
    for (std::int64_t query = 0; query < c.s; ++query)
      is_attended = is_attended || one_key(op.call().attributes.as<Attention>(), extents, 0, query) == key;
    std::vector<HostTensor> others = op.inputs;
    for (std::int64_t e = 0; e < c.hkv * c.d; ++e) others[1].set(key * c.hkv * c.d + e, 0.0);
    EXPECT_EQ(op.judged(op.with(others)) == Verdict::fail, is_attended) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(RevealingData, AttentionToOneKey, testing::ValuesIn(one_key_cases()),
                         [](const auto& one) { return one.param.name; });

// A tile of 16 keys that reads past the 77th finds zeros there: a score of 0.
TEST(RevealingData, ShowsAttentionThatReadsAKeyPastTheEnd) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const auto forward = [type](std::int64_t keys) {
      return one_key_program({"", {false, 0.125}, 40, keys, 2, 2, 64, 64, type}, false);
    };
    const Revealed op(forward(77), "scores far from 0");
    EXPECT_EQ(op.judged(op.left), Verdict::pass);
    const Program longer = forward(78);
    std::vector<HostTensor> inputs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      HostTensor& padded = inputs.emplace_back(longer.spec(longer.op(0).inputs[i]));
      const std::int64_t batches = 2, of_batch = op.inputs[i].elements() / batches;
      for (std::int64_t e = 0; e < op.inputs[i].elements(); ++e)
        padded.set(e / of_batch * (padded.elements() / batches) + e % of_batch, op.inputs[i].get(e));
    }
    std::vector<TensorSpec> outputs;
    for (const ValueId id : longer.op(0).outputs) outputs.push_back(longer.spec(id));
    EXPECT_EQ(op.judged(textbook_outputs({longer.op(0), views_of(inputs), outputs})), Verdict::fail) << name(type);
  }
}

// The given log-sum-exp is that of the scores: a query's probabilities add up to 1, so the gradients of v add up to
// those of o.
TEST(RevealingData, GiveAttentionBackwardTheLogSumExpOfScoresFarFromZero) {
  for (const Attention& attributes :
       {Attention{false, 0.125}, Attention{true, 0.125}, Attention{true, -0.125, 7}, Attention{true, 0.125, 0, 50.0}}) {
    const Revealed op(one_key_program({"", attributes, 48, 48, 2, 2, 64, 64}, true), "scores far from 0");
    EXPECT_EQ(op.judged(op.left), Verdict::pass);
    double of_o = 0.0, of_v = 0.0;
    for (std::int64_t e = 0; e < op.inputs[0].elements(); ++e) of_o += op.inputs[0].get(e);
    for (std::int64_t e = 0; e < op.left[2].elements(); ++e) of_v += op.left[2].get(e);
    EXPECT_NEAR(of_v, of_o, 1e-3 * std::fabs(of_o));
  }
}

// Scores then differ by less than 110, or not at all.
TEST(RevealingData, HaveNoOneKeyWhereScoresCantBeToldApart) {
  for (const Attention& attributes : {Attention{true, 0.125, 0, 50.0}, Attention{true, 0.0}}) {
    const OneKey c{"", attributes, 48, 48, 2, 2, 64, 64};
    EXPECT_THROW(Revealed(one_key_program(c, true), "one key"), std::out_of_range);
  }
  EXPECT_THROW(Revealed(one_key_program({"", {true, 0.125}, 48, 48, 2, 2, 4, 4}, true), "one key"), std::out_of_range);
}

}  // namespace revealing_data_test
}  // namespace gpubench
