// The verdicts of cheating implementations (cheats.c); those that end or change their process are in
// tests/harness/cli/cheats_test.cpp. Honest implementations must pass all probes in every trial.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "harness/core/hash.h"
#include "harness/run/impl_probes.h"
#include "harness/run/own_implementation.h"
#include "harness/run/process_state.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "suites/suites.h"
#include "tests/harness/run/cheats.h"
#include "tests/harness/run/loop_gemm.h"
#include "tests/harness/run/run_fixture.h"
#include "tests/trials.h"

namespace gpubench {
namespace cheats_test {

using ::testing::HasSubstr;
using ::testing::Not;

#if defined(__x86_64__)
constexpr const char* left_rounding =
    "left the rounding mode toward zero, the x87's the rounding mode toward zero; restored";
constexpr const char* left_flushing = "left denormal inputs read as zero, denormal results flushed to zero; restored";
constexpr const char* flushing_thread = "a thread has denormal inputs read as zero";
#else
constexpr const char* left_rounding = "left the rounding mode toward zero; restored";
constexpr const char* left_flushing = "left denormals flushed to zero; restored";
constexpr const char* flushing_thread = "a thread has denormals flushed to zero";
#endif

Program product(const Case& c, const Recipe& r) {
  Program p;
  const std::int64_t m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  const ValueId a = p.add(tensor("a", DType::f32, {m, k}, Role::input, Fill::normal(1.0)));
  gemm(p, {}, r.math, "product", a, p.add(tensor("b", DType::f32, {k, n}, Role::input, Fill::normal(1.0))));
  return p;
}

Program norm(const Case& c, const Recipe& r) {
  Program p;
  const std::int64_t rows = c.dim("m"), n = c.dim("n");
  const auto add = [&](const char* name, Shape shape) {
    return p.add(tensor(name, DType::f32, std::move(shape), Role::input, Fill::normal(1.0)));
  };
  const ValueId x = add("x", {rows, n}), gamma = add("gamma", {n});
  p.begin(Phase::setup);
  const LayerNormForward forward = layer_norm_forward(p, {}, r.math, "forward", x, gamma, add("beta", {n}));
  p.begin(Phase::timed);
  layer_norm_backward(p, {}, r.math, "norm", add("dy", {rows, n}), x, gamma, forward.mean, forward.rstd);
  return p;
}

/// One case, timed warm: every run uses the same copy.
std::vector<PlannedCase> one_case(const std::string& workload, std::vector<std::pair<std::string, std::int64_t>> dims) {
  Grid grid;
  grid.recipes = {"f32"};
  grid.points = {Point{std::move(dims), "one", Tier::smoke}};
  const WorkloadInfo info{workload, "a case for tests", "", PrimaryMetric::flop_per_s, "rows", CacheMode::warm};
  const std::vector<Suite> suites{
      {"own",
       "products",
       {suites::declare({info, grid, workload == "norm" ? norm : product, [](const Case&) { return 1.0; }})}}};
  return plan_cases(suites, {});
}

const std::vector<PlannedCase>& small() {
  static const auto planned = one_case("product", {{"m", 48}, {"n", 40}, {"k", 64}});
  return planned;
}
const std::vector<PlannedCase>& large() {
  static const auto planned = one_case("product", {{"m", 256}, {"n", 40}, {"k", 64}});
  return planned;
}
const std::vector<PlannedCase>& long_sums() {
  static const auto planned = one_case("product", {{"m", 24}, {"n", 40}, {"k", 2048}});
  return planned;
}
const std::vector<PlannedCase>& million() {
  static const auto planned = one_case("product", {{"m", 1000}, {"n", 1000}, {"k", 4}});
  return planned;
}
const std::vector<PlannedCase>& gradient() {
  static const auto planned = one_case("norm", {{"m", 37}, {"n", 48}});
  return planned;
}

RunOptions options_of(int rechecks = 0, CheckMode check = CheckMode::sample) {
  RunOptions options = sim::smoke_options();
  options.rechecks = rechecks;
  options.check = check;
  return options;
}

CaseRecord run_table(const gpubench_implementation& table, const std::vector<PlannedCase>& cases,
                     const RunOptions& options) {
  const OwnImplementation implementation("cheats", table);
  static const std::unique_ptr<Backend> cpu = open_cpu_backend(2);
  const std::unique_ptr<Backend> own = with_implementation(*cpu, implementation);
  sim::Remembering seen;
  run_in_process(*own, cases, options, seen, seen.stop);
  return seen.records.begin()->second;
}

CaseRecord run_cheat(const std::string& cheat, const std::vector<PlannedCase>& cases = small(),
                     const RunOptions& options = options_of()) {
  ::setenv("GPUBENCH_CHEAT", cheat.c_str(), 1);
  return run_table(cheats, cases, options);
}

struct Row {
  const char* cheat;
  Verdict verdict;
  const char* words;  ///< in its reason, its flags or its coverage
  const std::vector<PlannedCase>& (*cases)() = small;
  int rechecks = 0;
  CheckMode check = CheckMode::sample;
  int retries = 0;  ///< for verdicts from timings, in which other load can hide a cheat
};

std::string told(const CaseRecord& record) {
  std::string text = record.reason;
  for (const std::string& flag : record.summary.flags) text += " [" + flag + "]";
  return text;
}

class Cheat : public ::testing::TestWithParam<Row> {};

TEST_P(Cheat, EndsInItsVerdict) {
  const Row& row = GetParam();
  CaseRecord record = run_cheat(row.cheat, row.cases(), options_of(row.rechecks, row.check));
  for (int retry = 0; retry < row.retries && record.verdict != row.verdict; ++retry)
    record = run_cheat(row.cheat, row.cases(), options_of(row.rechecks, row.check));
  std::cout << "| " << row.cheat << " | " << name(record.verdict) << " | " << told(record) << " |\n";
  EXPECT_EQ(record.verdict, row.verdict) << told(record) << "; " << record.parity.coverage;
  EXPECT_THAT(told(record), HasSubstr(row.words));
}

INSTANTIATE_TEST_SUITE_P(
    Table, Cheat,
    ::testing::Values(
        Row{"does_nothing", Verdict::fail, "failed in check: unwritten"},
        Row{"zeros", Verdict::fail, "failed in check"}, Row{"first_result", Verdict::fail, "failed in recheck"},
        Row{"nothing_when_timed", Verdict::fail,
            "nothing of 'product' was written 20 ms after the launch had returned"},
        Row{"garbage_later", Verdict::fail, "failed in recheck"}, Row{"by_pointer", Verdict::fail, "failed in recheck"},
        Row{"by_content", Verdict::fail, "times as fast on data that it has seen before: it keeps results", small, 0,
            CheckMode::sample, 9},
        Row{"bf16", Verdict::downgraded, "all are right within the bound of bf16 inputs"},
        Row{"changes_input", Verdict::fail, "changed its input 'a'"},
        Row{"before_output", Verdict::fail, "wrote outside"}, Row{"after_output", Verdict::fail, "wrote outside"},
        Row{"beyond_workspace", Verdict::fail, "wrote outside 'the workspace'"},
        Row{"returns_early", Verdict::fail, "it returned before its work was done"},
        Row{"one_element", Verdict::fail, "failed in check: 1 of", million},
        Row{"one_element", Verdict::fail, "failed in check: 1 of 1000000", million, 0, CheckMode::full},
        Row{"scaled", Verdict::fail, "failed in exact", long_sums}, Row{"large_shapes", Verdict::pass, ""},
        Row{"large_shapes", Verdict::fail, "failed in check", large},
        Row{"now_and_then", Verdict::fail, "left 1 element in copy 0", small, 200},  // in a round or a recheck
        Row{"wrong_dgamma", Verdict::fail, "dgamma", gradient},
        Row{"signals", Verdict::error, "changed the handler of signal 8 (Floating point exception); restored"},
        Row{"signals_in_plan", Verdict::error, "'plan' changed the handler of signal 8"},
        Row{"rounding", Verdict::error, left_rounding}, Row{"flushes", Verdict::error, left_flushing},
        Row{"flushes_on_threads", Verdict::error, flushing_thread},
        Row{"affinity", Verdict::error, "changed the processors of 1 thread (1 instead of "},
        Row{"niceness", Verdict::error, "changed the niceness of 1 thread (5 instead of 0)"},
        Row{"policy", Verdict::error, "changed the scheduling policy of 1 thread (3 instead of 0"},
        Row{"busy_thread", Verdict::pass, "a thread stays busy between runs"},
        Row{"page_faults", Verdict::pass, "page faults in timed runs: 6"}, Row{"prints", Verdict::pass, ""}),
    [](const auto& row) {
      return std::string(row.param.cheat) + (row.param.cases == large ? "_there" : "") +
             (row.param.check == CheckMode::full ? "_in_full" : "");
    });

TEST(Cheats, RestoreTheProcessForTheNextCase) {
  for (const char* cheat : {"signals", "rounding", "flushes", "flushes_on_threads", "affinity", "policy"}) {
    (void)run_cheat(cheat);
    const CaseRecord next = run_cheat("honest");
    EXPECT_EQ(next.verdict, Verdict::pass) << "after " << cheat << ": " << next.reason;
  }
}

TEST(Cheats, FromHonestCodeDifferInNothingElse) {
  const CaseRecord record = run_cheat("honest", small(), options_of(20));
  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  EXPECT_THAT(told(record), ::testing::AllOf(Not(HasSubstr("page faults")), Not(HasSubstr("a thread"))));
  EXPECT_THAT(record.parity.coverage, HasSubstr("; probed for early return and kept results"));
}

TEST(KeptResults, AreSuspectedOnlyIfEveryPairIsFaster) {
  std::vector<NoveltyPair> pairs(novelty_pairs, NoveltyPair{290.0, 100.0});
  EXPECT_TRUE(keeps_results(pairs));
  EXPECT_NEAR(median_ratio(pairs), 2.9, 1e-12);
  pairs[4] = {119.0, 100.0};
  EXPECT_FALSE(keeps_results(pairs));
  EXPECT_FALSE(keeps_results({}));
}

TEST(WorkerClock, MayBeLateOnceButNeitherTwiceNorAhead) {
  WorkerClock honest;
  EXPECT_FALSE(honest.fault(10.000, 9.999, 10.001));
  EXPECT_FALSE(honest.fault(10.5, 10.7, 10.8));  // lost its processor before it sent
  EXPECT_FALSE(honest.fault(11.0, 10.9, 11.5));  // long latency, or read late
  EXPECT_FALSE(honest.fault(11.4, 11.6, 11.7));

  WorkerClock half;  // at half its speed since 10 s
  EXPECT_FALSE(half.fault(10.0, 9.99, 10.0));
  EXPECT_FALSE(half.fault(10.2, 10.39, 10.4));
  EXPECT_THAT(half.fault(10.3, 10.59, 10.6).value_or(""),
              HasSubstr("the worker's clock differs from the supervisor's: it is 0.29 s behind"));
  WorkerClock fast;
  EXPECT_THAT(fast.fault(10.5, 9.9, 10.0).value_or(""), HasSubstr("it is 0.5 s ahead"));
}

// Honest code with a kernel that branches on its data: the probe for kept results must not mistake learned branches for
// kept results.
gpubench_status offers_product(const gpubench_call* call, char* text, std::size_t size) {
  return cheats.offers(call, text, size);
}

gpubench_status branching_product(void*, const gpubench_call* call, void*, void*, char*, std::size_t) {
  const DLTensor &a = call->tensors[0].dl, &b = call->tensors[1].dl, &c = call->tensors[2].dl;
  const std::int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  const auto* left = static_cast<const float*>(a.data);
  const auto* right = static_cast<const float*>(b.data);
  auto* out = static_cast<float*>(c.data);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0.0F;
      volatile int up = 0, down = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        const float term = left[i * k + p] * right[p * n + j];
        if (term > 0.0F) {
          up = up + 1;
        } else {
          down = down + 1;
        }
        sum += term;
      }
      out[i * n + j] = sum;
    }
  }
  return GPUBENCH_OK;
}

const gpubench_implementation branching{
    GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "1.0", offers_product, nullptr, branching_product, nullptr};

gpubench_status offers_gradient(const gpubench_call* call, char* text, std::size_t size) {
  return std::strcmp(call->op, "gemm") == 0 ? GPUBENCH_DECLINED : cheats.offers(call, text, size);
}

// Seeds, ops and implementations in turn. All trials: `ctest -C trials -L trials`.
TEST(HonestImplementations, RaiseNoAlarm) {
  ::setenv("GPUBENCH_CHEAT", "honest", 1);
  gpubench_implementation gradients = cheats;
  gradients.offers = offers_gradient;
  const std::vector<PlannedCase> tiny = one_case("product", {{"m", 4}, {"n", 4}, {"k", 4}});
  const std::vector<PlannedCase> odd = one_case("product", {{"m", 17}, {"n", 31}, {"k", 129}});
  const std::vector<std::pair<const gpubench_implementation*, const std::vector<PlannedCase>*>> honest{
      {&loop_gemm, &small()}, {&cheats, &small()},       {&branching, &small()}, {&branching, &tiny},
      {&loop_gemm, &odd},     {&gradients, &gradient()}, {&cheats, &tiny}};
  const int trials = trial_count("GPUBENCH_TRIAL_HONEST", 35);
  const int first = trial_count("GPUBENCH_TRIAL_FIRST", 0);  // several processes can share the trials
  int alarms = 0, flags = 0;
  for (int trial = first; trial < first + trials; ++trial) {
    const auto& [table, cases] = honest[static_cast<std::size_t>(trial) % honest.size()];
    RunOptions options = options_of();
    options.seed = hash_at(1, static_cast<std::uint64_t>(trial));
    options.rounds = 2;
    const CaseRecord record = run_table(*table, *cases, options);
    if (record.verdict != Verdict::pass) {
      ++alarms;
      ADD_FAILURE() << "trial " << trial << ": " << name(record.verdict) << ", " << record.reason;
    }
    for (const std::string& flag : record.summary.flags)
      flags += flag.find("page faults") == 0 || flag.find("a thread") == 0;
  }
  tell_count("honest trials", trials);
  tell_count("false alarms", alarms);
  tell_count("false flags", flags);
  EXPECT_EQ(flags, 0);
}

}  // namespace cheats_test
}  // namespace gpubench
