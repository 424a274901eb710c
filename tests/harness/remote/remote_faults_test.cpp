// Faults of ranks in other processes: errors name the process and end only what they must.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <new>
#include <string_view>
#include <thread>

#include "harness/core/error.h"
#include "harness/remote/remote_ranks.h"
#include "harness/run/forwarding_backend.h"
#include "harness/run/rank_group.h"
#include "reference/cpu/cpu_backend.h"
#include "suites/suites.h"
#include "tests/harness/remote/memory_processes.h"
#include "tests/harness/run/run_fixture.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace remote_faults_test {

using testing::MemoryProcesses;
using testing::usual_setup;

/// A device on which `fault` is called before each run of an op.
class FaultyBackend final : public ForwardingBackend {
 public:
  FaultyBackend(std::unique_ptr<Backend> inner, std::function<void()> fault)
      : ForwardingBackend(*inner, nullptr), held_(std::move(inner)), fault_(std::move(fault)) {}
  void run(const Launch& launch) override {
    fault_();
    ForwardingBackend::run(launch);
  }

 private:
  std::unique_ptr<Backend> held_;
  std::function<void()> fault_;
};

/// Rank 1 has a FaultyBackend.
testing::MakeSetup faulty(std::function<void()> fault) {
  return [fault = std::move(fault)](int rank) {
    ServerSetup setup = usual_setup(rank);
    if (rank == 1) setup.open_backend = [fault] { return std::make_unique<FaultyBackend>(open_cpu_backend(1), fault); };
    return setup;
  };
}

struct Timed final : sim::Remembering {
  void phase(std::string_view id, std::string_view phase) override {
    sim::Remembering::phase(id, phase);
    now = phase == "time";
  }
  std::atomic<bool> now{false};
};

/// The transformer's step on two ranks, which has ops and collectives, and a collective.
std::map<std::string, CaseRecord> run_both(MemoryProcesses& processes, Timed& seen) {
  Selection selection;
  selection.suites = {"transformer", "collectives"};
  selection.filters = {"^transformer/bert_train_step/.*/f32/", "^collectives/broadcast/bytes=65536"};
  selection.tier = Tier::smoke;
  selection.ranks = {2};
  RunOptions options = sim::smoke_options();
  options.open_ranks = [&](int count, const OwnImplementation*) {
    return open_rank_group(processes.ranks().open(count), 60.0);
  };
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  run_in_process(*alone, plan_cases(all_suites(), selection), options, seen, seen.stop);
  return std::move(seen.records);
}

std::map<std::string, CaseRecord> run_both(MemoryProcesses& processes) {
  Timed seen;
  return run_both(processes, seen);
}

const CaseRecord& of(const std::map<std::string, CaseRecord>& records, std::string_view part) {
  for (const auto& [id, record] : records) {
    if (id.find(part) != std::string::npos) return record;
  }
  throw std::out_of_range(std::string(part));
}

TEST(RemoteFaults, AnOpThatFailsCostsItsCaseAndNamesItsProcess) {
  MemoryProcesses processes(2, 15.0, faulty([] { throw BackendError("no luck"); }));
  const auto records = run_both(processes);
  EXPECT_EQ(of(records, "transformer/").verdict, Verdict::error);
  EXPECT_NE(of(records, "transformer/").reason.find("rank 1: process 1 (pid 101 on host1): no luck"), std::string::npos)
      << of(records, "transformer/").reason;
  EXPECT_EQ(of(records, "collectives/").verdict, Verdict::pass) << of(records, "collectives/").reason;
}

// A step of 75 ops runs at least four times while it is timed, so run 190 falls into a round on any machine.
TEST(RemoteFaults, AnOpThatFailsInTheMiddleOfARoundReleasesItsPeers) {
  Timed seen;
  std::atomic<int> runs{0};
  MemoryProcesses processes(2, 15.0, faulty([&] {
                              if (seen.now && ++runs == 190) throw BackendError("no luck");
                            }));
  const auto records = run_both(processes, seen);
  EXPECT_EQ(of(records, "transformer/").verdict, Verdict::error);
  EXPECT_NE(of(records, "transformer/").reason.find("no luck"), std::string::npos)
      << runs << " runs: " << of(records, "transformer/").reason;
  EXPECT_EQ(of(records, "collectives/").verdict, Verdict::pass) << of(records, "collectives/").reason;
}

TEST(RemoteFaults, ARankWithoutMemoryIsNamed) {
  MemoryProcesses processes(2, 15.0, faulty([] { throw std::bad_alloc(); }));
  const auto records = run_both(processes);
  EXPECT_NE(of(records, "transformer/").reason.find("process 1 (pid 101 on host1): out of memory"), std::string::npos)
      << of(records, "transformer/").reason;
  EXPECT_EQ(of(records, "collectives/").verdict, Verdict::pass);
}

TEST(RemoteFaults, AnOpThatHangsIsNamedWithinTheLimitAndEndsTheRun) {
  std::promise<void> never;
  const std::shared_future<void> wake = never.get_future().share();
  // Static: the hanging thread outlives the test, and leak checkers would report it.
  static MemoryProcesses* const processes = new MemoryProcesses(2, 1.0, faulty([wake] { wake.wait(); }));
  const auto records = run_both(*processes);
  const CaseRecord& step = of(records, "transformer/");
  EXPECT_EQ(step.verdict, Verdict::error);
  EXPECT_NE(step.reason.find("process 1 (pid 101 on host1) has made no progress for 1 s, last in '"), std::string::npos)
      << step.reason;
  EXPECT_TRUE(processes->ranks().lost());
  never.set_value();
}

std::string refusal(const testing::MakeSetup& make, double limit_s = 15.0) {
  MemoryProcesses processes(3, limit_s, make);
  return thrown_text<BackendError>([&] { (void)processes.ranks(); });
}

TEST(RemoteFaults, AProcessOfAnotherBuildIsRefusedWithBoth) {
  EXPECT_EQ(
      refusal([](int rank) {
        ServerSetup setup = usual_setup(rank);
        if (rank == 2) setup.hello.build = "an older one";
        return setup;
      }),
      "process 2 (pid 102 on host2) is of another build: an older one there, this build in process 0; start the same "
      "program everywhere");
}

TEST(RemoteFaults, AProcessWithAnotherLibraryIsRefusedWithBothVersions) {
  const std::string why = refusal([](int rank) {
    return rank == 1 ? usual_setup(rank,
                                   [](DeviceInfo& device) {
                                     device.libraries = {{"onednn", "1.0.0"}};
                                   })
                     : usual_setup(rank);
  });
  EXPECT_EQ(why.find("process 1 (pid 101 on host1) has other libraries: cpu, onednn 1.0.0 there, cpu, onednn "), 0U)
      << why;
}

TEST(RemoteFaults, TwoProcessesWithOneGpuAreAnErrorNamingBoth) {
  const auto on = [](const char* first, const char* second) {
    return [=](int rank) {
      ServerSetup setup =
          usual_setup(rank, [=](DeviceInfo& device) { device.properties.emplace_back("pci_bus_id", "0000:1b:00.0"); });
      setup.hello.host = rank == 0 ? first : second;
      return setup;
    };
  };
  EXPECT_EQ(refusal(on("a", "a")),
            "process 1 (pid 101 on a) uses the GPU of process 0: 0000:1b:00.0 on a; start at most one process per GPU "
            "on each host");
  MemoryProcesses apart(3, 15.0, [&](int rank) { return on("a", rank == 1 ? "b" : "c")(rank); });
  EXPECT_EQ(apart.ranks().ranks(), 3);
}

TEST(RemoteFaults, AProcessThatCannotOpenItsDeviceIsNamedWithTheReason) {
  EXPECT_EQ(refusal([](int rank) {
              ServerSetup setup = usual_setup(rank);
              if (rank == 1) setup.open_backend = []() -> std::unique_ptr<Backend> { throw BackendError("no device"); };
              return setup;
            }),
            "process 1 (pid 101 on host1): no device");
}

// Process 0 is heard first, but peers that have answered are not culprits.
TEST(RemoteFaults, OfProcessesOnlyTheOneThatHangsWhileOpeningItsDeviceIsNamed) {
  std::promise<void> never;
  const std::shared_future<void> wake = never.get_future().share();
  static MemoryProcesses* const processes = new MemoryProcesses(3, 1.0, [wake](int rank) {
    ServerSetup setup = usual_setup(rank);
    if (rank == 0) {
      setup.open_backend = [wake] {
        wake.wait();
        return open_cpu_backend(1);
      };
    }
    return setup;
  });
  EXPECT_EQ(thrown_text<DeviceLost>([&] { (void)processes->ranks(); }),
            "process 0 (pid 100 on host0) has made no progress for 1 s, last in 'describe'");
  never.set_value();
}

TEST(RemoteFaults, ASilentProcessIsNamedWithinTheLimit) {
  ChannelPair silent = local_channel();
  EXPECT_EQ(thrown_text<DeviceLost>([&] { const RemoteRanks ranks({silent.first.get()}, usual_setup(0).hello, 0.3); }),
            "process 0 has sent nothing for 0.3 s, at its start: it has exited, is stopped, or its host is "
            "unreachable");
}

TEST(RemoteFaults, SilentProcessesAreAllNamedWithTheirHosts) {
  ChannelPair first = local_channel(), second = local_channel();
  std::string note, error;
  try {
    const RemoteRanks ranks({first.first.get(), second.first.get()}, usual_setup(0).hello, 0.3,
                            {{"a", "b"}, 0.05, [&note](const std::string& text) { note = text; }});
  } catch (const DeviceLost& e) {
    error = e.what();
  }
  EXPECT_EQ(note,
            "process 0 has had no answer for 0.05 s from process 0 (on a), process 1 (on b): each has exited, is "
            "stopped, or is unreachable");
  EXPECT_EQ(error.substr(error.find(';')), "; no answer from: process 0 (on a), process 1 (on b)");
}

TEST(RemoteFaults, AnotherSettingIsAUsageErrorWithBothValues) {
  const auto error = [](std::map<std::string, std::string> there) {
    MemoryProcesses processes(2, 15.0, [&there](int rank) {
      ServerSetup setup = usual_setup(rank);
      if (rank == 1) setup.hello.settings = there;
      return setup;
    });
    return thrown_text<UsageError>([&] { (void)processes.ranks(); });
  };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({{"--seed", "7"}}),
            "process 1 (pid 101 on host1) was started with --seed 7, process 0 with no --seed; start all processes "
            "with the same flags");
}

TEST(RemoteFaults, AnInvalidAnswerLosesTheProcess) {
  ChannelPair pair = local_channel();
  const std::byte nonsense[] = {std::byte{200}, std::byte{1}};
  pair.second->send(nonsense);
  EXPECT_EQ(thrown_text<DeviceLost>([&] { const RemoteRanks ranks({pair.first.get()}, usual_setup(0).hello, 15.0); }),
            "process 0: message has an invalid enum value");
}

// The server answers each invalid request with an error and continues.
TEST(RemoteFaults, ARequestOutsideABufferIsRefused) {
  ChannelPair pair = local_channel();
  std::thread serving([channel = pair.second.get()] { EXPECT_EQ(serve_rank(*channel, usual_setup(0)), 7); });
  const auto answer_to = [&](const MessageWriter& request) {
    pair.first->send(request.bytes());
    while (true) {
      const std::optional<std::vector<std::byte>> answer = pair.first->receive(60.0);
      MessageReader reader(answer.value());
      const auto kind = reader.get<Answer>();
      if (kind == Answer::beat) continue;  // a slow answer comes after a beat
      if (kind == Answer::done) return std::string("done");
      (void)reader.get<Failure>();
      return reader.text();
    }
  };
  MessageWriter allocate;
  allocate.put(Request::allocate);
  allocate.put(std::uint64_t{100});
  EXPECT_EQ(answer_to(allocate), "done");
  const auto read = [](std::uint64_t buffer, std::uint64_t offset, std::uint64_t bytes) {
    MessageWriter request;
    request.put(Request::read);
    put_place(request, {buffer, offset});
    request.put(bytes);
    return request;
  };
  EXPECT_EQ(answer_to(read(1, 40, 60)), "done");
  EXPECT_EQ(answer_to(read(1, 40, 61)), "61 bytes requested at offset 40 of a buffer of 100 bytes");
  EXPECT_EQ(answer_to(read(1, ~std::uint64_t{0}, 2)),
            "2 bytes requested at offset 18446744073709551615 of a buffer of 100 bytes");
  EXPECT_EQ(answer_to(read(1, 0, std::uint64_t{1} << 40U)),
            "1099511627776 bytes requested; the limit per message is 8388608");
  EXPECT_EQ(answer_to(read(2, 0, 1)), "no buffer 2 exists");
  EXPECT_EQ(answer_to(read(0, 0, 1)), "requested memory is in no buffer");
  MessageWriter gather;
  gather.put(Request::gather);
  put_place(gather, {1, 8});
  gather.put(std::uint64_t{4});
  gather.put_list(std::vector<std::int64_t>{0, -12});
  EXPECT_EQ(answer_to(gather).find("4 bytes requested at offset 18446744073709551612 "), 0U);
  MessageWriter scan;
  scan.put(Request::scan);
  put_place(scan, {1, 0});
  scan.put(DType::f32);
  for (const std::int64_t number : {2, 4, 22}) scan.put(number);
  EXPECT_EQ(answer_to(scan), "104 bytes requested at offset 0 of a buffer of 100 bytes");
  MessageWriter run;
  run.put(Request::run);
  run.put(std::uint64_t{1});
  run.put(std::uint64_t{1});
  EXPECT_EQ(answer_to(run), "no set 1 of ranks is open");
  MessageWriter longer;
  longer.put(Request::describe);
  longer.put(1);
  EXPECT_EQ(answer_to(longer), "message is longer than expected");
  MessageWriter end;
  end.put(Request::end);
  end.put(7);
  pair.first->send(end.bytes());
  serving.join();
}

}  // namespace remote_faults_test
}  // namespace gpubench
