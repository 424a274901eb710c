// Programs that reuse memory give the same bits; every op is still judged on its own outputs, and every fault is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>
#include <set>

#include "harness/plan/plan.h"
#include "harness/run/forwarding_backend.h"
#include "harness/run/prepared_case.h"
#include "harness/run/timing.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace memory_reuse_test {

using ::testing::HasSubstr;
using ::testing::Not;

using Build = std::function<Program()>;

class Built : public Workload {
 public:
  explicit Built(Build build) : build_(std::move(build)) {}
  [[nodiscard]] WorkloadInfo info() const override {
    return {"built", "a program for tests", "", PrimaryMetric::items_per_s, "elements", CacheMode::step};
  }
  [[nodiscard]] Grid grid() const override { return {{{{{"n", 1}}, "tiny", Tier::smoke}}, {"f32"}}; }
  [[nodiscard]] Program build(const Case&) const override { return build_(); }
  [[nodiscard]] double items(const Case&) const override { return 1.0; }

 private:
  Build build_;
};

PlannedCase planned(const Build& build) {
  PlannedCase result;
  result.c.suite = "sim";
  result.c.workload = "built";
  result.c.dims = {{"n", 1}};
  result.c.recipe = "f32";
  result.c.tier = Tier::smoke;
  result.c.cache = CacheMode::step;
  result.workload = std::make_shared<Built>(build);
  const Program program = build();
  result.cost = cost_of(program);
  result.bytes = program.bytes();
  result.definition = definition_digest(result.c, *result.workload, program);
  return result;
}

ValueId matrix(Program& p, const std::string& name, Role role = Role::input) {
  return p.add(tensor(name, DType::f32, {8, 8}, role, Fill::normal(0.5)));
}

// Two layers, twice; with state each run adds the middle of the chain to it.
Program net(bool with_state) {
  Program p;
  const ValueId w = matrix(p, "w", Role::parameter);
  const ValueId v = matrix(p, "v", Role::parameter);
  ValueId x = matrix(p, "x");
  for (const std::string layer : {"a", "b"}) {
    const ValueId up = gemm(p, {}, {}, layer + ".up", x, w).c;
    const ValueId on = gelu_forward(p, {}, {}, layer + ".gelu", up);
    const ValueId down = gemm(p, {}, {}, layer + ".down", v, on).c;
    x = add(p, {}, layer + ".add", on, down);
    if (with_state && layer == "a") {
      const ValueId c = matrix(p, "c", Role::state);
      p.append({add_kind, {}, {}, {down, c}, {p.update(c, "c'")}, "sum"});
    }
  }
  add(p, {}, "out", x, x);
  return p;
}
Program stateless() { return net(false); }
Program stateful() { return net(true); }

/// The bytes of a case on the sim backend if its memory is planned in `segments` segments.
std::int64_t room_for(const Program& program, int segments) {
  std::int64_t bytes = guarded_bytes(plan_memory(program, segments)) + 256;  // its scratch memory
  for (int i = 0; i < static_cast<int>(program.storages().size()); ++i) {
    if (program.is_state({i})) bytes += guarded_bytes(program.storages()[static_cast<std::size_t>(i)].bytes);
  }
  return bytes;
}

CaseRecord record_of(Backend& backend, const Build& build, std::int64_t limit_bytes, CheckMode check) {
  RunOptions options = smoke_options();
  options.memory_limit_bytes = limit_bytes;
  options.check = check;
  Remembering seen;
  run_in_process(backend, std::vector{planned(build)}, options, seen, seen.stop);
  return seen.records.begin()->second;
}

CaseRecord record_under(const std::string& script, const Build& build, int segments,
                        CheckMode check = CheckMode::sample) {
  SimBackend backend(parse_script(script));
  return record_of(backend, build, room_for(build(), segments), check);
}

TEST(MemoryReuse, TakesLessMemoryAndStillJudgesEveryOpTwiceWhole) {
  for (const auto& build : {stateless, stateful}) {
    const CaseRecord all = record_under("", build, 1);
    EXPECT_EQ(all.verdict, Verdict::pass) << all.reason;
    EXPECT_THAT(all.parity.coverage, Not(HasSubstr("memory reused")));
    for (const std::string script : {"", "opaque", "opaque;examines"}) {
      for (const int segments : {2, 4, 16}) {
        const CaseRecord reused = record_under(script, build, segments);
        EXPECT_EQ(reused.verdict, Verdict::pass) << script << segments << reused.reason;
        EXPECT_LT(reused.memory_bytes, all.memory_bytes);
        EXPECT_EQ(reused.parity.ops.size(), all.parity.ops.size());
        EXPECT_THAT(reused.parity.coverage, HasSubstr("ops, 100% of elements; recheck replayed in "));
        EXPECT_THAT(reused.parity.coverage, HasSubstr("; 100% of products bit for bit on exact data; "));
        // Of three rounds with state the first only sets the expected bits.
        EXPECT_THAT(reused.parity.coverage,
                    HasSubstr(build == stateless ? ": all of their results" : ": 67% of their results"));
        EXPECT_THAT(reused.parity.coverage, HasSubstr("; memory reused, "));
        for (const OpParity& op : reused.parity.ops) EXPECT_EQ(op.judged, op.elements) << op.label;
      }
    }
    const CaseRecord full = record_under("", build, 16, CheckMode::full);
    EXPECT_EQ(full.verdict, Verdict::pass) << full.reason;
    ASSERT_TRUE(full.parity.end_to_end);
    EXPECT_FALSE(full.parity.end_to_end->empty());
  }
}

TEST(MemoryReuse, ACaseThatDoesNotFitEvenSoIsSkippedWithTheLeastThatItNeeds) {
  SimBackend backend(parse_script(""));
  const CaseRecord record = record_of(backend, stateless, minimal_memory(stateless()).bytes() - 1, CheckMode::sample);
  EXPECT_EQ(record.verdict, Verdict::skipped);
  EXPECT_THAT(record.reason, HasSubstr("needs 1.8 kB"));  // w, v, x and out, and three that are needed together
  EXPECT_EQ(backend.peak_bytes(), 0);
}

// All faults of the sim, in every op, alone and only in sequences.
TEST(MemoryReuse, EveryFaultOfEveryOpIsFound) {
  for (const auto& build : {stateless, stateful}) {
    const Program program = build();
    for (const OpCall& call : program.ops()) {
      std::vector<std::string> faults{"drop", "wrong_element", "wrong_element/sequence", "unwritten/sequence",
                                      "nan/sequence"};
      if (call.inputs.size() > 1) faults.emplace_back("stale");
      if (program.value(call.inputs.front()).producer) faults.emplace_back("early");
      for (const std::string& fault : faults) {
        for (const int segments : {2, 16}) {
          const CaseRecord record = record_under(fault + "@" + call.label, build, segments);
          EXPECT_EQ(record.verdict, Verdict::fail) << fault << "@" << call.label << " in " << segments;
        }
      }
    }
  }
}

TEST(MemoryReuse, WritingOutsideASharedPlaceIsFoundBesideTheLargestAndTheSmaller) {
  const Build build = [] {
    Program p;
    ValueId x = matrix(p, "x");
    for (const std::string name : {"y0", "y1", "y2"}) x = add(p, {}, name, x, x);
    ValueId small = p.add(tensor("s", DType::f32, {5}, Role::input, Fill::normal(1.0)));
    for (const std::string name : {"s0", "s1", "s2"}) small = add(p, {}, name, small, small);
    add(p, {}, "out", x, x);
    add(p, {}, "small.out", small, small);
    return p;
  };
  const Program program = build();
  std::set<std::size_t> shares;
  for (const MemorySlot& slot : plan_memory(program, 16).slots) {
    for (const StorageId id : slot.storages) {
      if (slot.storages.size() > 1) shares.insert(static_cast<std::size_t>(slot.bytes - program.storage(id).bytes));
    }
  }
  ASSERT_GT(shares.size(), 1U) << "no smaller storage lies in a larger one's place";
  for (const OpCall& call : program.ops()) {
    const CaseRecord record = record_under("guard@" + call.label, build, 16);
    EXPECT_EQ(record.verdict, Verdict::fail) << call.label;
    EXPECT_THAT(record.reason, HasSubstr("wrote outside")) << call.label;
  }
}

/// A backend on which only sequences of all timed ops are wrong.
class WrongAsAWhole final : public ForwardingBackend {
 public:
  using Order = std::function<void(std::vector<Launch>&)>;
  WrongAsAWhole(Backend& inner, std::size_t ops, Order wrong)
      : ForwardingBackend(inner, nullptr), ops_(ops), wrong_(std::move(wrong)) {}
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    std::vector<Launch> all(launches.begin(), launches.end());
    if (all.size() == ops_) wrong_(all);
    return inner().sequence(all, schedule);
  }

 private:
  std::size_t ops_;
  Order wrong_;
};

// No segment has the fault, so only the comparison of the launch's bits can find it.
TEST(MemoryReuse, AFaultOfTheWholeLaunchAloneIsFoundByWhatItLeaves) {
  for (const auto& build : {stateless, stateful}) {
    const std::size_t ops = build().ops().size();
    for (std::size_t op = 0; op < ops; ++op) {
      for (const bool dropped : {true, false}) {
        if (!dropped && op + 1 == ops) continue;
        SimBackend sim(parse_script(""));
        WrongAsAWhole backend(sim, ops, [&](std::vector<Launch>& all) {
          const auto at = all.begin() + static_cast<std::ptrdiff_t>(op);
          dropped ? (void)all.erase(at) : std::swap(*at, *(at + 1));
        });
        const CaseRecord record = record_of(backend, build, room_for(build(), 16), CheckMode::sample);
        if (!dropped && record.verdict == Verdict::pass) {
          const std::vector<std::vector<int>> waits =
              dependencies(build(), plan_memory(build(), 16), std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
          EXPECT_EQ(std::ranges::count(waits[op + 1], static_cast<int>(op)), 0) << op;
          continue;
        }
        EXPECT_EQ(record.verdict, Verdict::fail) << (dropped ? "dropped " : "swapped ") << op;
      }
    }
  }
}

// Random sums, products and updates in place of matrices of different sizes.
Program random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Program p;
  std::vector<std::vector<ValueId>> matrices;  // by size
  for (const std::int64_t n : {4, 8, 12}) {
    const std::string name = "n" + std::to_string(n);
    matrices.push_back({});
    for (const std::string which : {"a", "b"})
      matrices.back().push_back(p.add(tensor(which + name, DType::f32, {n, n}, Role::input, Fill::normal(0.25))));
  }
  for (int op = 0; op < 24; ++op) {
    std::vector<ValueId>& of_size = matrices[any(matrices.size())];
    const std::string label = "v" + std::to_string(op);
    const ValueId left = of_size[any(of_size.size())];
    const ValueId right = of_size[any(of_size.size())];
    switch (any(4)) {
      case 0: {
        const std::size_t i = any(of_size.size());
        of_size[i] = gemm(p, {.beta = 1.0}, {}, label, left, right, {.c_in = of_size[i]}).c;
        break;
      }
      case 1: of_size.push_back(gemm(p, {}, {}, label, left, right).c); break;
      default: of_size.push_back(add(p, {}, label, left, right));
    }
    if (of_size.size() > 4) of_size.erase(of_size.begin() + static_cast<std::ptrdiff_t>(any(2)));
  }
  return p;
}

/// Contents after one run of the timed launch, by storage.
std::map<int, std::vector<std::byte>> left_by(Backend& backend, const PlannedCase& planned, std::int64_t room,
                                              bool& reuses) {
  Arena arena(backend);
  PreparedCase prepared(backend, arena, planned, 42, room);
  reuses = prepared.memory_plan().reuses();
  prepared.set_up();
  prepared.make_copies(room);
  backend.run(prepared.timed(0));
  std::map<int, std::vector<std::byte>> left;
  std::vector<StorageId> storages = prepared.produced();
  storages.insert(storages.end(), prepared.state().begin(), prepared.state().end());
  for (const StorageId id : storages) {
    const HostBytes content = prepared.memory(0).block(id).copy();
    left[id.index].assign(content.bytes.begin(), content.bytes.end());
  }
  return left;
}

// Repeated division by the scale would give 0, on which no check proves anything.
TEST(OpsTimedAlone, LeaveUnscaleTheGradientsThatItStartedFrom) {
  const std::unique_ptr<Backend> cpu = open_cpu_backend(1);
  const PlannedCase one = planned([] {
    Program program;
    const ValueId x = program.add(tensor("x", DType::f32, {64}, Role::input, Fill::constant(1.5)));
    const ValueId scale = program.add(tensor("scale", DType::f32, {1}, Role::state, Fill::constant(1024.0)));
    const ValueId gradient = add(program, Math{}, "gradient", x, x);
    unscale(program, Math{}, "unscale", scale, std::array{gradient});
    return program;
  });
  Arena arena(*cpu);
  PreparedCase prepared(*cpu, arena, one, 42, std::int64_t{1} << 20);
  prepared.set_up();
  prepared.make_copies(std::int64_t{1} << 20);

  ASSERT_EQ(time_ops_alone(prepared, Protocol{}).size(), 2U);

  const HostBytes left =
      prepared.memory(0).block(prepared.program().value(prepared.program().op(0).outputs[0]).storage).copy();
  float first = 0.0F;
  std::memcpy(&first, left.bytes.data(), sizeof first);
  EXPECT_EQ(first, 3.0F);
}

TEST(MemoryReuse, RandomProgramsLeaveTheSameBitsHoweverTheirMemoryIsPlanned) {
  const std::unique_ptr<Backend> cpu = open_cpu_backend(1);
  SimBackend sim(parse_script(""));
  int reused = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const PlannedCase one = planned([seed] { return random_program(seed); });
    for (Backend* backend : {static_cast<Backend*>(&sim), cpu.get()}) {
      bool reuses = false;
      const auto all = left_by(*backend, one, std::int64_t{1} << 30U, reuses);
      EXPECT_FALSE(reuses);
      for (const int segments : {2, 5, 24}) {
        const std::int64_t scratch = backend == &sim ? 256 : 64 << 10;
        const auto some = left_by(*backend, one, room_for(random_program(seed), segments) - 256 + scratch, reuses);
        reused += reuses ? 1 : 0;
        for (const auto& [storage, bytes] : some) EXPECT_EQ(bytes, all.at(storage)) << seed << " " << segments;
      }
    }
    const CaseRecord record = record_under(
        "", [seed] { return random_program(seed); }, 24);
    EXPECT_EQ(record.verdict, Verdict::pass) << seed << " " << record.reason;
  }
  EXPECT_GT(reused, 40);
}

}  // namespace memory_reuse_test
}  // namespace gpubench::sim
