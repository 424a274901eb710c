// Attention against formulas written out in fp64, forward and backward, with bounds derived beside them:
// lengths that fill no block, widths that fill no vector, grouped queries, packed operands, both masks, both types.
#include "reference/ops/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "harness/core/error.h"
#include "reference/cpu/cpu_backend.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench {
namespace attention_test {

using testing::ProgramRun;
using testing::shared_backend;

constexpr double u32 = 1.0 / (1 << 24);
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Setting {
  AttentionExtents extents;
  bool causal = true;
  DType type = DType::f32;
  bool packed = false;  // q, k, v and their gradients as parts of one tensor
  double scale = 0.0;   // 0: 1 / sqrt(d)

  [[nodiscard]] double factor() const { return scale != 0.0 ? scale : 1.0 / std::sqrt(static_cast<double>(extents.d)); }
};

std::ostream& operator<<(std::ostream& out, const Setting& s) {
  const AttentionExtents& e = s.extents;
  return out << "b=" << e.b << " s=" << e.s << " hq=" << e.hq << " hkv=" << e.hkv << " d=" << e.d
             << (s.causal ? " causal " : " full ") << name(s.type) << (s.packed ? " packed" : "");
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// The program of a setting and its values' names.
struct Values {
  ValueId q, k, v, d_o, o, lse, dq, dk, dv;
  std::optional<ValueId> qkv;
};

ValueId part_of_packed(Program& program, ValueId packed, const Setting& s, const char* name, std::int64_t heads,
                       std::int64_t first_head) {
  const AttentionExtents& e = s.extents;
  const std::int64_t row = (e.hq + 2 * e.hkv) * e.d;
  TensorSpec spec = tensor(name, s.type, {e.b, e.s, heads, e.d}, Role::activation);
  spec.layout.strides = {e.s * row, row, e.d, 1};
  return program.part(packed, spec, first_head * e.d);
}

Program program_of(const Setting& s, bool backward, Values& values) {
  const AttentionExtents& e = s.extents;
  Program program;
  const Shape queries{e.b, e.s, e.hq, e.d};
  const Shape keys{e.b, e.s, e.hkv, e.d};
  AttentionGradients into;
  if (s.packed) {
    const Shape rows{e.b, e.s, (e.hq + 2 * e.hkv) * e.d};
    values.qkv = program.add(tensor("qkv", s.type, rows, Role::activation));
    values.q = part_of_packed(program, *values.qkv, s, "q", e.hq, 0);
    values.k = part_of_packed(program, *values.qkv, s, "k", e.hkv, e.hq);
    values.v = part_of_packed(program, *values.qkv, s, "v", e.hkv, e.hq + e.hkv);
    if (backward) {
      const ValueId d_qkv = program.reserve(tensor("d_qkv", s.type, rows, Role::gradient));
      into = {part_of_packed(program, d_qkv, s, "dq", e.hq, 0), part_of_packed(program, d_qkv, s, "dk", e.hkv, e.hq),
              part_of_packed(program, d_qkv, s, "dv", e.hkv, e.hq + e.hkv)};
    }
  } else {
    values.q = program.add(tensor("q", s.type, queries, Role::activation));
    values.k = program.add(tensor("k", s.type, keys, Role::activation));
    values.v = program.add(tensor("v", s.type, keys, Role::activation));
  }
  const Attention attributes{s.causal, s.factor()};
  const AttentionForward forward =
      attention_forward(program, attributes, Math{}, "forward", values.q, values.k, values.v);
  values.o = forward.o;
  values.lse = forward.lse;
  if (!backward) return program;
  values.d_o = program.add(tensor("d_o", s.type, queries, Role::gradient));
  const AttentionBackward gradients = attention_backward(program, attributes, Math{}, "backward", values.d_o, values.q,
                                                         values.k, values.v, values.o, values.lse, {}, into);
  values.dq = gradients.dq;
  values.dk = gradients.dk;
  values.dv = gradients.dv;
  return program;
}

struct Experiment {
  explicit Experiment(const Setting& wanted, bool backward = false, Backend& backend = shared_backend())
      : s(wanted), run(backend, program_of(wanted, backward, values)) {
    if (values.qkv) {
      run.set_random(*values.qkv, 1);
    } else {
      run.set_random(values.q, 1);
      run.set_random(values.k, 2);
      run.set_random(values.v, 3);
    }
    if (backward) run.set_random(values.d_o, 4);
  }

  Setting s;
  Values values;
  ProgramRun run;
};

// A tensor of heads as fp64, and a place to gather what it should be.
struct HeadValues {
  std::vector<double> data;
  std::int64_t s = 0, h = 0, d = 0;

  [[nodiscard]] double& at(std::int64_t b, std::int64_t i, std::int64_t head, std::int64_t c) {
    return data[index(((b * s + i) * h + head) * d + c)];
  }
};

HeadValues heads_of(const Experiment& x, ValueId id) {
  const Shape& shape = x.run.program().spec(id).shape;
  return {x.run.get(id), shape[1], shape[2], shape[3]};
}
// Of a sum whose additions round to nearest, for terms that do not drift.
double rule_g(double sum, double squares, double terms) {
  return u32 * (std::abs(sum) + std::sqrt(squares)) * 2.0 * std::sqrt(terms);
}

// A value within +-bound of `want` may round to anything between the two ends' roundings.
void expect_within(DType type, double got, double want, double bound, const std::string& where) {
  const double low = round_to(type, want - bound);
  const double high = round_to(type, want + bound);
  EXPECT_TRUE(low <= got && got <= high) << where << ": got " << got << ", want " << want << " within " << bound;
}

void expect_all_within(const Experiment& x, ValueId id, const std::vector<double>& want,
                       const std::vector<double>& bound) {
  const TensorSpec& spec = x.run.program().spec(id);
  const std::vector<double> got = x.run.get(id);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    expect_within(spec.dtype, got[i], want[i], bound[i], spec.name + "[" + std::to_string(i) + "]");
    if (::testing::Test::HasFailure()) return;
  }
}

// Scores of one query with the error that f32 scores may have.
struct Row {
  std::vector<double> score, slack;
  double largest = -std::numeric_limits<double>::infinity();
};

Row scores_of(const Setting& s, HeadValues& q, HeadValues& k, std::int64_t b, std::int64_t head, std::int64_t i) {
  const AttentionExtents& e = s.extents;
  const std::int64_t kv = head / (e.hq / e.hkv);
  Row row;
  for (std::int64_t j = 0; j < (s.causal ? i + 1 : e.s); ++j) {
    double sum = 0.0, squares = 0.0;
    for (std::int64_t c = 0; c < e.d; ++c) {
      const double term = q.at(b, i, head, c) * k.at(b, j, kv, c);
      sum += term;
      squares += term * term;
    }
    row.score.push_back(s.factor() * sum);
    row.slack.push_back(s.factor() * rule_g(sum, squares, static_cast<double>(e.d)));
    row.largest = std::max(row.largest, row.score.back());
  }
  for (std::size_t j = 0; j < row.score.size(); ++j) {
    row.slack[j] += u32 * (3.0 * std::abs(row.score[j]) + 3.0 * std::abs(row.largest) + 4.0);
  }
  return row;
}

// One query row.
void check_forward_row(Experiment& x, HeadValues& q, HeadValues& k, HeadValues& v, HeadValues& o,
                       const std::vector<double>& lse, std::int64_t b, std::int64_t head, std::int64_t i) {
  const AttentionExtents& e = x.s.extents;
  const std::int64_t kv = head / (e.hq / e.hkv);
  const double u_p = unit_roundoff(x.s.type);
  const Row row = scores_of(x.s, q, k, b, head, i);
  const auto keys = row.score.size();
  double total = 0.0, lse_slack = 0.0;
  for (const double score : row.score) total += std::exp(score - row.largest);
  std::vector<double> p(keys);
  for (std::size_t j = 0; j < keys; ++j) {
    p[j] = std::exp(row.score[j] - row.largest) / total;
    lse_slack += p[j] * row.slack[j];
  }
  const double n = static_cast<double>(keys);
  const double want_lse = row.largest + std::log(total);
  const std::string where = "row " + std::to_string(i) + " of head " + std::to_string(head);
  expect_within(DType::f32, lse[index((b * e.hq + head) * e.s + i)], want_lse,
                lse_slack + u32 * (std::sqrt(n) + 2.0 + 2.0 * std::abs(want_lse)), "lse of " + where);
  for (std::int64_t c = 0; c < e.d; ++c) {
    double want = 0.0, size = 0.0, squares = 0.0, variance = 0.0, worst = 0.0;
    for (std::size_t j = 0; j < keys; ++j) want += p[j] * v.at(b, static_cast<std::int64_t>(j), kv, c);
    for (std::size_t j = 0; j < keys; ++j) {
      const double value = v.at(b, static_cast<std::int64_t>(j), kv, c);
      const double moved = p[j] * std::abs(value - want) * row.slack[j];
      size += p[j] * std::abs(value);
      squares += p[j] * p[j] * value * value;
      variance += moved * moved / 3.0;
      worst += moved;
    }
    variance += 0.2 * u_p * u_p * squares;
    worst += u_p * size;
    const double bound = std::min(worst, 6.0 * std::sqrt(variance)) + rule_g(want, squares, n) +
                         u32 * std::abs(want) * (2.0 + 2.0 * std::sqrt(n)) + 4.0 * u32 * std::sqrt(squares);
    expect_within(x.s.type, o.at(b, i, head, c), want, bound, "o of " + where + " column " + std::to_string(c));
  }
}

void check_forward(Experiment& x) {
  const AttentionExtents& e = x.s.extents;
  HeadValues q = heads_of(x, x.values.q), k = heads_of(x, x.values.k), v = heads_of(x, x.values.v),
             o = heads_of(x, x.values.o);
  const std::vector<double> lse = x.run.get(x.values.lse);
  for (std::int64_t b = 0; b < e.b; ++b) {
    for (std::int64_t head = 0; head < e.hq; ++head) {
      for (std::int64_t i = 0; i < e.s; ++i) {
        check_forward_row(x, q, k, v, o, lse, b, head, i);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// Sums whose terms carry errors of their own: exact value, squares of the terms, errors linear and in squares.
struct Sum {
  std::vector<double> value, squares, linear, rss;
  explicit Sum(std::size_t elements) : value(elements), squares(elements), linear(elements), rss(elements) {}

  void add(std::size_t at, double term, double error) {
    value[at] += term;
    squares[at] += term * term;
    linear[at] += error;
    rss[at] += error * error;
  }
  [[nodiscard]] std::vector<double> bounds(double scale, double terms) const {
    std::vector<double> result;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const double carried = std::min(linear[i], 6.0 * std::sqrt(rss[i]));
      result.push_back(scale * (carried + rule_g(value[i], squares[i], terms) + u32 * std::abs(value[i])));
    }
    return result;
  }
  [[nodiscard]] std::vector<double> scaled(double scale) const {
    std::vector<double> result = value;
    for (double& v : result) v *= scale;
    return result;
  }
};

// o and lse are read as given.
void check_backward(Experiment& x) {
  const AttentionExtents& e = x.s.extents;
  const double u_p = unit_roundoff(x.s.type);
  HeadValues q = heads_of(x, x.values.q), k = heads_of(x, x.values.k), v = heads_of(x, x.values.v),
             o = heads_of(x, x.values.o);
  HeadValues d_o = heads_of(x, x.values.d_o);
  const std::vector<double> lse = x.run.get(x.values.lse);
  Sum dq(q.data.size()), dk(k.data.size()), dv(v.data.size());
  const auto place = [&](std::int64_t b, std::int64_t i, std::int64_t heads, std::int64_t head, std::int64_t c) {
    return index(((b * e.s + i) * heads + head) * e.d + c);
  };
  const double d = static_cast<double>(e.d);
  for (std::int64_t b = 0; b < e.b; ++b) {
    for (std::int64_t head = 0; head < e.hq; ++head) {
      const std::int64_t kv = head / (e.hq / e.hkv);
      for (std::int64_t i = 0; i < e.s; ++i) {
        const Row row = scores_of(x.s, q, k, b, head, i);
        const double l = lse[index((b * e.hq + head) * e.s + i)];
        double delta = 0.0, delta_squares = 0.0;
        for (std::int64_t c = 0; c < e.d; ++c) {
          const double term = d_o.at(b, i, head, c) * o.at(b, i, head, c);
          delta += term;
          delta_squares += term * term;
        }
        const double delta_error = rule_g(delta, delta_squares, d) + 64.0 * u32;
        for (std::int64_t j = 0; j < static_cast<std::int64_t>(row.score.size()); ++j) {
          const double p = std::exp(row.score[index(j)] - l);
          const double p_error = row.slack[index(j)] + u32 * (4.0 * std::abs(l) + 6.0);
          double dp = 0.0, dp_squares = 0.0;
          for (std::int64_t c = 0; c < e.d; ++c) {
            const double term = d_o.at(b, i, head, c) * v.at(b, j, kv, c);
            dp += term;
            dp_squares += term * term;
          }
          const double ds = p * (dp - delta);
          const double ds_error =
              p * ((p_error + 2.0 * u32) * std::abs(dp - delta) + rule_g(dp, dp_squares, d) + delta_error) +
              u_p * std::abs(ds);
          for (std::int64_t c = 0; c < e.d; ++c) {
            const double grad = d_o.at(b, i, head, c);
            dv.add(place(b, j, e.hkv, kv, c), p * grad, p * (p_error + u_p) * std::abs(grad));
            dk.add(place(b, j, e.hkv, kv, c), ds * q.at(b, i, head, c), ds_error * std::abs(q.at(b, i, head, c)));
            dq.add(place(b, i, e.hq, head, c), ds * k.at(b, j, kv, c), ds_error * std::abs(k.at(b, j, kv, c)));
          }
        }
      }
    }
  }
  const double s = static_cast<double>(e.s);
  const double queries = s * static_cast<double>(e.hq / e.hkv);
  expect_all_within(x, x.values.dq, dq.scaled(x.s.factor()), dq.bounds(x.s.factor(), s));
  expect_all_within(x, x.values.dk, dk.scaled(x.s.factor()), dk.bounds(x.s.factor(), queries));
  expect_all_within(x, x.values.dv, dv.value, dv.bounds(1.0, queries));
}

class EverySetting : public ::testing::TestWithParam<Setting> {};

// Up to 7 s a setting: gradients and their bounds are worked out here a second time.
TEST_P(EverySetting, KeepsForwardAndBackwardWithinTheirBounds) {
  Experiment x(GetParam(), true);

  x.run.run();

  check_forward(x);
  check_backward(x);
  EXPECT_TRUE(x.run.canaries_intact());
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const bool causal : {true, false}) {
      for (const std::int64_t s : {1, 17, 127, 129, 200}) all.push_back({{1, s, 2, 2, 64}, causal, type});
      for (const std::int64_t d : {8, 80, 128}) all.push_back({{1, 70, 2, 2, d}, causal, type});
      all.push_back({{1, 33, 1, 1, 7}, causal, type});         // rows of bf16 that start at odd multiples of 2 bytes
      all.push_back({{1, 600, 1, 1, 16}, causal, type});       // more keys than a chunk
      all.push_back({{2, 90, 8, 2, 32}, causal, type, true});  // grouped, packed
      all.push_back({{2, 65, 3, 3, 64}, causal, type, true, 0.5});
      all.push_back({{1, 300, 3, 1, 16}, causal, type});  // one kv head for all threads
      all.push_back({{4, 70, 16, 8, 32}, causal, type});  // a kv head for each thread, many times over
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Cpu, EverySetting, ::testing::ValuesIn(settings()));

class BothTypes : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Cpu, BothTypes, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name(type.param)); });

// Two keys, d = 1, by hand: q = 1, k = (0, ln 3), scale 1: weights of query 1 are 1/4 and 3/4.
TEST(Attention, WeighsTwoKeysAsWorkedOutByHand) {
  Experiment x({{1, 2, 1, 1, 1}, true, DType::f32, false, 1.0});
  x.run.set(x.values.q, std::vector<double>{1.0, 1.0});
  x.run.set(x.values.k, std::vector<double>{0.0, std::log(3.0)});
  x.run.set(x.values.v, std::vector<double>{4.0, 8.0});

  x.run.run();

  const std::vector<double> o = x.run.get(x.values.o);
  const std::vector<double> lse = x.run.get(x.values.lse);
  EXPECT_EQ(o[0], 4.0);
  EXPECT_NEAR(o[1], 4.0 / 4.0 + 8.0 * 3.0 / 4.0, 7.0 * 4.0 * u32);
  EXPECT_EQ(lse[0], 0.0);
  EXPECT_NEAR(lse[1], std::log(4.0), 4.0 * u32);
}

// Key i + 1 is made parallel to q_i and huge: were it seen, it would take all the mass.
TEST_P(BothTypes, SeesNoKeyBeyondTheDiagonal) {
  for (const std::int64_t i : {0, 15, 31, 62, 63, 64, 127, 130}) {
    Experiment x({{1, 140, 1, 1, 16}, true, GetParam()});
    std::vector<double> k = x.run.get(x.values.k);
    const std::vector<double> q = x.run.get(x.values.q);
    for (std::int64_t c = 0; c < 16; ++c) k[index((i + 1) * 16 + c)] = 1000.0 * q[index(i * 16 + c)];
    x.run.set(x.values.k, k);

    x.run.run();

    check_forward(x);
    if (HasFailure()) FAIL() << "key " << i + 1;
  }
}

TEST_P(BothTypes, LetsANanKeyReachOnlyTheQueriesThatSeeIt) {
  const std::int64_t s = 200, d = 16, bad = 70;
  Experiment x({{1, s, 1, 1, d}, true, GetParam()}, true);
  std::vector<double> k = x.run.get(x.values.k);
  k[index(bad * d + 3)] = nan;
  x.run.set(x.values.k, k);

  x.run.run();

  const std::vector<double> o = x.run.get(x.values.o);
  const std::vector<double> lse = x.run.get(x.values.lse);
  for (std::int64_t i = 0; i < s; ++i) {
    EXPECT_EQ(std::isnan(lse[index(i)]), i >= bad) << i;
    for (std::int64_t c = 0; c < d; ++c) EXPECT_EQ(std::isnan(o[index(i * d + c)]), i >= bad) << i;
  }
  // A query that is NaN through its log-sum-exp reaches the gradients of every key that it sees: all up to the last.
  for (const double value : x.run.get(x.values.dv)) EXPECT_TRUE(std::isnan(value));
}

// In the middle of a block of queries, at its ends, in the second chunk of keys.
TEST_P(BothTypes, LetsANanOrInfiniteValueReachOnlyTheQueriesThatSeeIt) {
  const std::int64_t s = 600, d = 16;
  for (const double wrong : {nan, std::numeric_limits<double>::infinity()}) {
    for (const std::int64_t bad : {0, 63, 64, 100, 511, 530, 599}) {
      Experiment clean({{1, s, 1, 1, d}, true, GetParam()});
      Experiment x({{1, s, 1, 1, d}, true, GetParam()});
      std::vector<double> v = x.run.get(x.values.v);
      v[index(bad * d + 3)] = wrong;
      x.run.set(x.values.v, v);

      clean.run.run();
      x.run.run();

      const std::vector<double> want = clean.run.get(clean.values.o);
      const std::vector<double> o = x.run.get(x.values.o);
      const std::vector<double> lse = x.run.get(x.values.lse);
      for (std::int64_t i = 0; i < s; ++i) {
        ASSERT_TRUE(std::isfinite(lse[index(i)])) << bad << ", " << i;
        for (std::int64_t c = 0; c < d; ++c) {
          const double got = o[index(i * d + c)];
          ASSERT_EQ(std::isfinite(got), i < bad || c != 3) << bad << ", " << i << ", " << c;
          if (std::isfinite(got)) {
            ASSERT_NEAR(got, want[index(i * d + c)], 0.02) << bad << ", " << i << ", " << c;
          }
        }
      }
    }
  }
}

// The neighbours of k and v in packed storage, and what lies behind the last row, are never read as keys.
TEST_P(BothTypes, ReadsNothingBetweenTheParts) {
  const AttentionExtents e{1, 33, 4, 2, 8};
  Experiment plain({e, false, GetParam()});
  Experiment packed({e, false, GetParam(), true});
  for (const auto& [from, to] : {std::pair{plain.values.q, packed.values.q}, std::pair{plain.values.k, packed.values.k},
                                 std::pair{plain.values.v, packed.values.v}}) {
    packed.run.set(to, plain.run.get(from));
  }

  plain.run.run();
  packed.run.run();

  EXPECT_EQ(plain.run.get(plain.values.o), packed.run.get(packed.values.o));
  EXPECT_EQ(plain.run.get(plain.values.lse), packed.run.get(packed.values.lse));
}

TEST_P(BothTypes, RepeatsBitByBit) {
  Experiment x({{1, 700, 3, 1, 32}, true, GetParam()}, true);
  x.run.run();
  std::vector<std::vector<std::byte>> first;
  const ValueId outputs[] = {x.values.o, x.values.lse, x.values.dq, x.values.dk, x.values.dv};
  for (const ValueId id : outputs) first.push_back(x.run.bytes_of(id));

  for (int repeat = 0; repeat < 5; ++repeat) {
    x.run.run_again();

    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(x.run.bytes_of(outputs[i]), first[i]) << "output " << i;
  }
}

// Blocks of a head do not know who computes them, nor whether one thread has all of a head (six heads: one thread alone
// has) or they are dealt out. dk and dv too, as no key's sums are split; dq is added up in shares.
TEST_P(BothTypes, GivesTheSameBitsOnOneTwoAndFiveThreads) {
  std::vector<std::vector<std::byte>> first;
  for (const int threads : {1, 2, 5}) {
    const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
    Experiment x({{6, 150, 2, 1, 32}, true, GetParam()}, true, *backend);

    x.run.run();

    check_forward(x);
    check_backward(x);
    std::vector<std::vector<std::byte>> bytes;
    for (const ValueId id : {x.values.o, x.values.lse, x.values.dk, x.values.dv}) bytes.push_back(x.run.bytes_of(id));
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads << " threads";
  }
}

TEST_P(BothTypes, StandsLargeScores) {
  Experiment x({{1, 100, 1, 1, 64}, true, GetParam(), false, 8.0});  // scores of some hundreds: exp would overflow

  x.run.run();

  check_forward(x);
}

TEST(Attention, SaysWhoComputes) {
  Experiment x({{1, 8, 1, 1, 8}, true, DType::bf16}, true);

  x.run.run();

  EXPECT_EQ(x.run.implementation(0).rfind("gpubench:", 0), 0U) << x.run.implementation(0);
  EXPECT_EQ(x.run.implementation(0), x.run.implementation(1));
}

TEST(Attention, RefusesAScaleThatIsNotPositive) {
  for (const double scale : {-1.0, nan}) {
    Program program;
    const Shape shape{1, 4, 1, 8};
    const ValueId q = program.add(tensor("q", DType::f32, shape, Role::activation));
    (void)attention_forward(program, Attention{true, scale}, Math{}, "forward", q, q, q);
    ProgramRun run(shared_backend(), program);

    EXPECT_THROW(run.run(), Unsupported);
  }
}

TEST(Attention, RefusesF64) {
  Program program;
  const ValueId q = program.add(tensor("q", DType::f64, Shape{1, 4, 1, 8}, Role::activation));
  (void)attention_forward(program, Attention{}, Math{}, "forward", q, q, q);
  ProgramRun run(shared_backend(), program);

  EXPECT_THROW(run.run(), Unsupported);
}

}  // namespace attention_test
}  // namespace gpubench
