// Isolation: a worker that crashes, hangs, exits or sends garbage costs one case. Starts real processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "harness/run/child_process.h"
#include "harness/run/wire.h"
#include "tests/harness/run/run_fixture.h"
#include "tests/paths.h"
#include "tests/trials.h"

namespace gpubench::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double long_deadline_s = 60.0;  // never reached
constexpr double short_deadline_s = 2.0;  // for tests that wait for it; phases of sim cases take milliseconds

/// The sim suite in workers that follow `script`, with further flags of sim_worker.
struct Isolated {
  explicit Isolated(const std::string& script, const std::vector<std::string>& flags = {},
                    const std::string& stop_at = "", double deadline_s = long_deadline_s) {
    RunOptions options = smoke_options();
    options.deadline_floor_s = deadline_s;
    WorkerCommand command{{paths::sim_worker, "--script", script}};
    command.argv.insert(command.argv.end(), flags.begin(), flags.end());
    seen.stop_at = stop_at;
    run_isolated(sim_cases(), options, command, TextCodec(), seen, seen.stop);
  }
  Remembering seen;
};

void expect_one_error(const Isolated& run, const std::string& name, const std::vector<std::string>& reason) {
  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_EQ(run.seen.count(Verdict::pass), 5);
  const CaseRecord& record = run.seen.of(name);
  EXPECT_EQ(record.verdict, Verdict::error);
  for (const std::string& part : reason) EXPECT_THAT(record.reason, HasSubstr(part));
  EXPECT_THAT(record.rerun, HasSubstr("--filter '^sim/" + name + "/"));
}

TEST(Isolation, WithoutFaultsOneWorkerRunsAllCases) {
  const Isolated run("");

  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_EQ(run.seen.count(Verdict::pass), 6);
  EXPECT_EQ(run.seen.of("first").rounds.size(), 3U);
  EXPECT_TRUE(run.seen.notes.empty());
}

/// Ends the process that builds it.
class Unbuildable final : public Workload {
 public:
  explicit Unbuildable(std::shared_ptr<const Workload> named) : named_(std::move(named)) {}
  [[nodiscard]] WorkloadInfo info() const override { return named_->info(); }
  [[nodiscard]] Grid grid() const override { return named_->grid(); }
  [[nodiscard]] Program build(const Case& /*c*/) const override { std::_Exit(9); }
  [[nodiscard]] double items(const Case& c) const override { return named_->items(c); }

 private:
  std::shared_ptr<const Workload> named_;
};

TEST(Isolation, AWorkerBuildsTheProgramsOfItsOwnGroupsAlone) {
  std::vector<PlannedCase> cases = sim::sim_cases();
  for (PlannedCase& other : std::span(cases).subspan(1)) other.workload = std::make_shared<Unbuildable>(other.workload);
  int to_worker[2], from_worker[2];
  ASSERT_EQ(::pipe(to_worker), 0);
  ASSERT_EQ(::pipe(from_worker), 0);
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::close(to_worker[1]);
    const std::unique_ptr<Backend> backend = open_sim_backend("");
    std::_Exit(serve(*backend, cases, sim::smoke_options(), sim::TextCodec(), to_worker[0], from_worker[1]));
  }
  ::close(to_worker[0]);
  ::close(from_worker[1]);
  write_frame(to_worker[1], {FrameKind::group, encode_group({{0, cases[0].id()}})});
  ::close(to_worker[1]);
  FrameReader reader;
  std::vector<FrameKind> seen;
  while (read_some(from_worker[0], reader)) {
    while (const std::optional<Frame> frame = reader.next()) seen.push_back(frame->kind);
  }
  ::close(from_worker[0]);
  int status = -1;
  ::waitpid(worker, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), FrameKind::record), 1);
}

TEST(Isolation, PhasesAreToldAsTheyHappen) {
  const Isolated run("");

  std::vector<std::string> phases;
  for (const auto& [id, phase] : run.seen.phases) {
    if (id == sim_id("last")) phases.push_back(phase);
  }
  EXPECT_THAT(phases, ::testing::ElementsAre("prepare", "check", "time", "time", "time", "recheck"));
}

TEST(Isolation, ACrashCostsTheCaseThatRanAndIsNamedByItsSignal) {
  for (const auto& [script, name, reason] :
       {std::tuple{"kill@chain.down", "chain", "worker ended by signal 9 (Killed) while 'check' of this case ran"},
        {"kill@first.gemm", "first", "signal 9"},
        {"kill@last.add", "last", "signal 9"},
        {"kill/sequence@update.gemm", "update", "while 'time' of this case ran"},
        {"segv@chain.down", "chain", "signal 11 (Segmentation fault)"},
        {"abort@chain.down", "chain", "signal 6 (Aborted)"},
        {"exit@clip.norm", "clip", "worker exited with status 0 while 'check' of this case ran"}}) {
    SCOPED_TRACE(script);
    expect_one_error(Isolated(script), name, {reason});
  }
  EXPECT_EQ(Isolated("kill@chain.down").seen.notes.size(), 1U);
}

TEST(Isolation, EveryFaultInTheFirstAMiddleOrTheLastCaseCostsThatCaseAlone) {
  int faults = 0;
  for (const std::string where : {"first.gemm", "update.gemm", "last.add"}) {
    const std::string name = where.substr(0, where.find('.'));
    const auto expect = [&](const Remembering& seen, const std::string& kind, Verdict verdict) {
      SCOPED_TRACE(kind + "@" + where);
      ASSERT_EQ(seen.records.size(), 6U);
      EXPECT_EQ(seen.count(Verdict::pass), 5);
      EXPECT_EQ(seen.of(name).verdict, verdict) << seen.of(name).reason;
      ++faults;
    };
    for (const auto& [kind, verdict] : {std::pair{"wrong_element", Verdict::fail},
                                        {"unwritten", Verdict::fail},
                                        {"nan", Verdict::fail},
                                        {"inf", Verdict::fail},
                                        {"guard", Verdict::fail},
                                        {"changes_input", Verdict::fail},
                                        {"out_of_memory", Verdict::error},
                                        {"bad_alloc", Verdict::error},
                                        {"unsupported", Verdict::unsupported}}) {
      const std::string script = std::string(kind) + "@" + where;
      expect(Isolated(script).seen, kind, verdict);
      expect(InProcess(script).seen, kind, verdict);
    }
    for (const std::string kind : {"kill", "segv", "abort", "exit", "lost"})
      expect(Isolated(kind + "@" + where).seen, kind, Verdict::error);
  }
  tell_count("faults of the sim backend", faults);
}

TEST(Isolation, SeveralCrashesCostSeveralCasesAndNoMore) {
  const Isolated run("kill@first.gemm;exit@packed.gemm;kill/sequence@last.add");

  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_EQ(run.seen.count(Verdict::error), 3);
  EXPECT_EQ(run.seen.count(Verdict::pass), 3);
}

TEST(Isolation, ALostDeviceCostsTheCaseThatMetItAndTheOthersGetAFreshOne) {
  const Isolated run("lost@chain.down");

  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_EQ(run.seen.count(Verdict::pass), 5);
  EXPECT_THAT(run.seen.of("chain").reason, HasSubstr("sim: illegal address (in phase 'check')"));
  EXPECT_THAT(run.seen.notes, ::testing::ElementsAre(HasSubstr("the worker lost its device")));
}

TEST(Isolation, ADeviceLostInATimedRoundCostsThatCaseAlone) {
  const Isolated run("lost/sequence@update.gemm");

  EXPECT_EQ(run.seen.count(Verdict::pass), 5);
  EXPECT_THAT(run.seen.of("update").reason, HasSubstr("sim: illegal address (in phase 'time')"));
}

TEST(Isolation, DevicesLostInEveryCaseEndInOneErrorEach) {
  const Isolated run("lost@first.gemm;lost@chain.down;lost@update.gemm;lost@packed.gemm;lost@clip.norm;lost@last.add");

  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_EQ(run.seen.count(Verdict::error), 6);
}

TEST(Isolation, FirstCasesThatCannotBePreparedForOneReasonEndTheRun) {
  for (const auto& [fault, reason] :
       {std::pair{"unplanned", "sim: cannot plan anything"}, {"kill_in_plan", "worker ended by signal 9 (Killed)"}}) {
    std::string script;
    for (const char* label : {"first.gemm", "chain.down", "update.gemm", "packed.gemm", "clip.norm", "last.add"})
      script += fmt::format("{}{}@{}", script.empty() ? "" : ";", fault, label);
    const Isolated run(script);
    ASSERT_EQ(run.seen.records.size(), 6U);
    EXPECT_EQ(run.seen.count(Verdict::error), 6);
    int tried = 0;
    std::set<std::string> reasons;
    for (const auto& [key, record] : run.seen.records) {
      EXPECT_THAT(record.reason, HasSubstr(reason));
      if (record.reason.starts_with("given up"))
        reasons.insert(record.reason);
      else
        ++tried;
    }
    EXPECT_EQ(tried, 3) << fault;
    EXPECT_EQ(reasons.size(), 1U) << "the others share one reason";
  }
}

TEST(Isolation, ThreeThatCannotBePreparedAfterOneThatCanEndNothing) {
  const Isolated run("kill_in_plan@chain.down;kill_in_plan@update.gemm;kill_in_plan@packed.gemm");
  EXPECT_EQ(run.seen.count(Verdict::pass), 3);
}

TEST(Isolation, AHangIsEndedAtItsDeadline) {
  expect_one_error(Isolated("hang@update.gemm", {}, "", short_deadline_s), "update",
                   {"no answer for 2 s while 'check' of this case ran"});
}

// The reason of a hanging case if all cases are expected to take `expected_s`.
std::string reason_of_a_hang(double expected_s, double cap_s) {
  RunOptions options = smoke_options();
  options.deadline_floor_s = 1.0;
  options.deadline_cap_s = cap_s;
  for (const PlannedCase& planned : sim_cases()) options.expected_s[planned.id()] = expected_s;
  Remembering seen;
  run_isolated(sim_cases(), options, {{paths::sim_worker, "--script", "hang@update.gemm"}}, TextCodec(), seen,
               seen.stop);
  return seen.of("update").reason;
}

TEST(Isolation, ADeadlineFollowsTheEstimateUpToItsCap) {
  EXPECT_THAT(reason_of_a_hang(0.5, 60.0), HasSubstr("no answer for 1.5 s (3 times the estimate of 0.5 s) while"));
  EXPECT_THAT(reason_of_a_hang(1000.0, 1.5), HasSubstr("no answer for 1.5 s (the longest silence allowed)"));
}

// One case of the sim suite whose plans take `plan_ms` each, in a worker that may be silent for `floor_s`.
CaseRecord planned_slowly(const std::string& name, int plan_ms, double floor_s, double plan_limit_s) {
  RunOptions options = smoke_options();
  options.deadline_floor_s = floor_s;
  options.plan_limit_s = plan_limit_s;
  std::vector<PlannedCase> one = sim_cases();
  std::erase_if(one, [&](const PlannedCase& planned) { return planned.id() != sim_id(name); });
  Remembering seen;
  run_isolated(one, options, {{paths::sim_worker, "--script", "plan_ms=" + std::to_string(plan_ms)}}, TextCodec(), seen,
               seen.stop);
  return seen.of(name);
}

// Three ops, 2.4 s in all; cuDNN plans take seconds each.
TEST(Isolation, EachOpThatIsPlannedIsASignOfLife) {
  const CaseRecord record = planned_slowly("chain", 800, 1.6, 0.0);
  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
}

TEST(InProcess, TheRecordSaysHowLongItsPlansTook) {
  EXPECT_GE(InProcess("plan_ms=20").seen.of("chain").plan_s.value_or(0.0), 0.06);
}

TEST(Isolation, OnePlanMayTakeAsLongAsTheDeviceIsKnownToTake) {
  EXPECT_EQ(planned_slowly("first", 1500, 0.5, 30.0).verdict, Verdict::pass);
  EXPECT_THAT(planned_slowly("first", 1500, 0.5, 0.0).reason,
              HasSubstr("no answer for 0.5 s while 'prepare' of this case ran"));
}

// The first case stays in one phase for 1.8 s, with or without beats; three times the estimate is 0.9 s.
void run_slow_worker(const std::vector<std::string>& flags, Remembering& seen) {
  RunOptions options = smoke_options();
  options.deadline_floor_s = 0.5;
  options.deadline_cap_s = 60.0;
  for (const PlannedCase& planned : sim_cases()) options.expected_s[planned.id()] = 0.3;
  WorkerCommand command{{paths::sim_worker, "--script", ""}};
  command.argv.insert(command.argv.end(), flags.begin(), flags.end());
  run_isolated(sim_cases(), options, command, TextCodec(), seen, seen.stop);
}

TEST(Isolation, AWorkerThatBeatsPastItsDeadlineIsLeftToFinishAndSaidToBeSlow) {
  Remembering seen;
  run_slow_worker({"--beats", "90"}, seen);

  EXPECT_EQ(seen.count(Verdict::pass), 6);
  EXPECT_THAT(seen.notes, ::testing::ElementsAre(AllOf(HasSubstr("has been in phase 'check' for"),
                                                       HasSubstr("its worker still answers"))));
}

TEST(Isolation, AWorkerThatDoesNotBeatIsEndedAtItsDeadline) {
  Remembering seen;
  run_slow_worker({"--mute"}, seen);

  EXPECT_THAT(seen.of("first").reason,
              HasSubstr("no answer for 0.9 s (3 times the estimate of 0.3 s) while 'check' of this case ran"));
}

// While it exists, this process and its children share one processor with seven other processes.
class CrowdedProcessor {
 public:
  CrowdedProcessor() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    for (pid_t& pid : others_) {
      pid = ::fork();
      if (pid != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile bool idle = false; !idle;) {
      }
    }
  }
  CrowdedProcessor(const CrowdedProcessor&) = delete;
  CrowdedProcessor& operator=(const CrowdedProcessor&) = delete;
  ~CrowdedProcessor() {
    for (const pid_t pid : others_) {
      if (pid <= 0) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    ::sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  std::array<pid_t, 7> others_{};
};

TEST(Isolation, WaitingForAProcessorIsNoHang) {
  if (!std::ifstream("/proc/self/schedstat")) GTEST_SKIP() << "this kernel doesn't count how long a task waits";
  const CrowdedProcessor crowded;
  Remembering seen;
  run_slow_worker({"--toil", "0.2"}, seen);  // 1.6 s with an eighth of a processor; the deadline is 0.9 s

  EXPECT_EQ(seen.count(Verdict::pass), 6);
}

TEST(Isolation, AWorkerThatNeverSaysAnythingIsGivenUp) {
  RunOptions options = smoke_options();
  options.deadline_floor_s = 0.1;
  options.opening_deadline_s = 0.2;
  Remembering seen;
  run_isolated(sim_cases(), options, {{"/bin/sh", "-c", "exec sleep 1000"}}, TextCodec(), seen, seen.stop);

  EXPECT_EQ(seen.count(Verdict::error), 6);
  EXPECT_THAT(seen.of("last").reason, HasSubstr("no worker could do any work: no answer for 0.2 s from a new worker"));
}

TEST(Isolation, WithoutDeadlinesAHangIsWaitedForUntilAStop) {
  // Only the stop ends the phase that hangs, since a deadline of 0 s is no limit.
  const Isolated run("hang@first.gemm", {}, "check", 0.0);

  EXPECT_EQ(run.seen.records.size(), 0U);
}

// The engine checks `stop` between two ops, before the op that hangs.
TEST(InProcess, AStopEndsTheCheckBetweenTwoOps) {
  Remembering seen;
  seen.stop_at = "check";
  SimBackend backend(parse_script("hang@first.gemm"));
  run_in_process(backend, sim_cases(), smoke_options(), seen, seen.stop);

  EXPECT_EQ(seen.records.size(), 0U);
}

TEST(Isolation, AHangThatIgnoresSigtermIsKilled) {
  expect_one_error(Isolated("stubborn@first.gemm", {}, "", short_deadline_s), "first", {"no answer for"});
}

TEST(Isolation, NonsenseInThePipeIsNeverBelievedAndNeverLoops) {
  const Isolated run("", {"--babble"});

  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_EQ(run.seen.count(Verdict::error), 6);  // every worker sends garbage
  EXPECT_THAT(run.seen.of("first").reason, HasSubstr("bytes that do not start a message"));
}

TEST(Isolation, AMessageThatIsCutShortOrTooLongIsNeverBelieved) {
  for (const auto& [flag, reason] :
       {std::pair{"--cut-short", "exited with status 0"}, {"--oversized", "a message of 2147483647 bytes"}}) {
    const Isolated run("", {flag});
    ASSERT_EQ(run.seen.records.size(), 6U);
    EXPECT_EQ(run.seen.count(Verdict::error), 6);
    EXPECT_THAT(run.seen.of("first").reason, HasSubstr(reason));
    EXPECT_THAT(run.seen.notes, ::testing::Not(::testing::Contains("a note")));
  }
}

TEST(Isolation, WorkersThatDieAtOnceAreGivenUp) {
  const Isolated run("", {"--stillborn"});

  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_EQ(run.seen.count(Verdict::error), 6);
  EXPECT_THAT(run.seen.of("last").reason,
              AllOf(HasSubstr("no worker could do any work"), HasSubstr("exited with status 7")));
}

TEST(Isolation, AWorkerThatCannotBeStartedIsAnErrorOfEveryCase) {
  Remembering seen;
  run_isolated(sim_cases(), smoke_options(), {{"/no/such/program"}}, TextCodec(), seen, seen.stop);

  EXPECT_EQ(seen.count(Verdict::error), 6);
  EXPECT_THAT(seen.of("first").reason, HasSubstr("could not start '/no/such/program'"));
}

TEST(Isolation, AStopEndsTheWorkerAndReturns) {
  const Isolated run("hang/sequence@first.gemm", {}, "time");

  EXPECT_EQ(run.seen.records.size(), 0U);
}

TEST(Isolation, WrongNumbersAreTheSameInAWorker) {
  const Isolated run("drop@chain.down");

  EXPECT_EQ(run.seen.count(Verdict::pass), 5);
  EXPECT_EQ(run.seen.of("chain").verdict, Verdict::fail);
  EXPECT_THAT(run.seen.of("chain").reason, HasSubstr("op 'chain.down' (gemm) failed"));
}

}  // namespace
}  // namespace gpubench::sim

// How OpenMP's threads wait; GNU's library reads it when a process starts.
namespace gpubench::child_process_test {
namespace {

/// Sets this one of the two variables, or none; restores both in the destructor.
class OneVariable {
 public:
  explicit OneVariable(const char* name = nullptr, const char* value = nullptr) {
    for (const char* each : names) {
      if (const char* set = std::getenv(each)) before_[each] = set;
      ::unsetenv(each);
    }
    if (name != nullptr) ::setenv(name, value, 1);
  }
  OneVariable(const OneVariable&) = delete;
  OneVariable& operator=(const OneVariable&) = delete;
  ~OneVariable() {
    for (const char* each : names) ::unsetenv(each);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  static constexpr std::array names{"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"};
  std::map<std::string, std::string> before_;
};

std::string spins_of_child(bool yields) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  ChildEnd child(start_child({"/bin/sh", "-c", "printf '%s.%s' \"$GOMP_SPINCOUNT\" \"$OMP_WAIT_POLICY\" >&3"},
                             {.descriptors = {{3, writing.get()}}, .yields = yields}));
  writing = Descriptor();
  std::array<char, 64> told{};
  const ssize_t count = ::read(reading.get(), told.data(), told.size());
  EXPECT_TRUE(child.within(60.0));
  return {told.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

TEST(ChildProcess, ThreadsOfAWorkerSpinBrieflyAndOthersAsTheyAre) {
  const OneVariable none;
  EXPECT_EQ(spins_of_child(true), "100000.");
  EXPECT_EQ(spins_of_child(false), ".");
  EXPECT_EQ(std::getenv("GOMP_SPINCOUNT"), nullptr);  // reports list the user's variables
}

TEST(ChildProcess, WhatTheUserHasSaidAboutWaitingStands) {
  {
    const OneVariable spins("GOMP_SPINCOUNT", "7");
    EXPECT_EQ(spins_of_child(true), "7.");
  }
  const OneVariable policy("OMP_WAIT_POLICY", "active");
  EXPECT_EQ(spins_of_child(true), ".active");
}

// For a signal, the status of waitpid() is its number.
TEST(ChildProcess, AnOutOfMemoryKillIsReported) {
  std::istringstream vmstat("nr_free_pages 17\noom_kill 3\nswap_ra 0\n");
  EXPECT_EQ(memory_kills(vmstat), 3);
  std::istringstream old("nr_free_pages 17\n");
  EXPECT_EQ(memory_kills(old), std::nullopt);
  EXPECT_EQ(describe_status(SIGKILL, 3, 4), "ended by signal 9 (Killed; the kernel's out-of-memory killer was active)");
  EXPECT_EQ(describe_status(SIGKILL, 3, 3), "ended by signal 9 (Killed)");
  EXPECT_EQ(describe_status(SIGKILL, std::nullopt, 4), "ended by signal 9 (Killed)");
  EXPECT_EQ(describe_status(SIGSEGV, 3, 4), "ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(describe_status(3 << 8, 3, 4), "exited with status 3");
}

}  // namespace
}  // namespace gpubench::child_process_test
