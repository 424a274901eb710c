// Overhead of the harness per sample; goal 2 us (median, processors idle).
//
// sample_of_nothing: rounds of empty launches on the CPU backend; `inside_ns` lies between a sample's two clock
// readings, and thus in the reported time.
// round_of_a_case: a round of the engine; `outside_us` excludes samples and warm-up (restoring state, binding threads,
// telemetry). Once per round, in no reported time.
// launch: an empty one, by the backend and through the interface for implementations under test, in turns;
// `interface_ns` is the difference.
// summary: the statistics of a case of 20 rounds of 10 samples, per sample.
#include <benchmark/benchmark.h>

#include <numeric>

#include "harness/hardware/telemetry.h"
#include "harness/measure/statistics.h"
#include "harness/run/own_implementation.h"
#include "harness/run/prepared_case.h"
#include "harness/run/timing.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/pointwise.h"
#include "suites/suites.h"

namespace gpubench {
namespace {

void sample_of_nothing(benchmark::State& state) {
  constexpr int samples = 1000;
  const std::unique_ptr<Backend> backend = open_cpu_backend();
  std::vector<Launch> copies;
  for (std::int64_t i = 0; i < state.range(0); ++i) copies.push_back(backend->sequence({}, {}));
  std::vector<double> inside;
  for (auto _ : state) {
    const Stopwatch watch;
    const RoundTimes times = backend->time(copies, {samples, 1, 1, 0.0, Cadence::streaming});
    state.SetIterationTime(watch.seconds() / samples);
    inside.push_back(median(times.wall_ns));
  }
  state.counters["inside_ns"] = median(inside);
}

void launch(benchmark::State& state) {
  constexpr int samples = 20;
  constexpr std::int64_t batch = 1 << 14;
  const std::unique_ptr<Backend> cpu = open_cpu_backend(1);
  const gpubench_implementation nothing{
      GPUBENCH_ABI_VERSION,
      sizeof(gpubench_implementation),
      nullptr,
      [](const gpubench_call*, char*, std::size_t) { return GPUBENCH_OK; },
      nullptr,
      [](void*, const gpubench_call*, void*, void*, char*, std::size_t) { return GPUBENCH_OK; },
      nullptr};
  const OwnImplementation own("nothing", nothing);
  const std::unique_ptr<Backend> through = with_implementation(*cpu, own);
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, {1}, Role::input));
  relu_forward(program, {}, "relu", x);
  const std::vector<TensorSpec> specs = specs_of_call(program, program.op(0));
  std::vector<Buffer> memory;
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs) {
    memory.push_back(cpu->allocate(static_cast<std::size_t>(spec.bytes())));
    tensors.push_back({spec, memory.back().data()});
  }
  const std::vector<Launch> ours{through->bind(through->plan(program.op(0), specs, {}), tensors, {})};
  const std::vector<Launch> direct{cpu->launch_of([](void*) {})};
  std::vector<double> differences, alone;
  for (auto _ : state) {
    const auto ns = [&](const std::vector<Launch>& launches) {
      return median(cpu->time(launches, {samples, batch, 1, 0.0, Cadence::streaming}).wall_ns) / batch;
    };
    alone.push_back(ns(direct));
    differences.push_back(ns(ours) - alone.back());
  }
  state.counters["alone_ns"] = median(alone);
  state.counters["interface_ns"] = median(differences);
}

// Samples of one run, in the number of the longest preset.
void round_of_a_case(benchmark::State& state, const char* filter) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.filters = {filter};
  const std::vector<PlannedCase> cases = plan_cases(all_suites(), selection);
  const std::unique_ptr<Backend> backend = open_cpu_backend();
  Arena arena(*backend);
  PreparedCase prepared(*backend, arena, cases.at(0), 42, backend->device().available_bytes);
  prepared.set_up();
  prepared.make_copies(backend->device().available_bytes);
  Protocol protocol = protocol_of(Preset::thorough);
  protocol.min_sample_s = 0.0;
  protocol.warmup_calls = protocol.first_warmup_calls = 1;
  protocol.warmup_s = protocol.first_warmup_s = 0.0;
  const std::unique_ptr<Telemetry> telemetry = open_telemetry(backend->device());
  CaseRecord record;
  time_round(prepared, protocol, *telemetry, record, true);  // also sets the batch
  std::vector<double> outside;
  for (auto _ : state) {
    const Stopwatch watch;
    time_round(prepared, protocol, *telemetry, record, false);
    const double wall_ns = watch.seconds() * 1e9;
    const std::vector<double>& samples = record.rounds.back().times.wall_ns;
    const double one_run = median(samples);  // time of the warm-up call
    outside.push_back((wall_ns - one_run - std::accumulate(samples.begin(), samples.end(), 0.0)) * 1e-3);
    state.SetIterationTime(wall_ns * 1e-9);
  }
  state.SetLabel(cases.at(0).id());
  state.counters["outside_us"] = median(outside);
}

void summary(benchmark::State& state) {
  constexpr int rounds = 20;
  constexpr int samples = 10;
  std::vector<RoundRecord> records(rounds);
  double ns = 1000.0;
  for (RoundRecord& round : records) {
    for (int i = 0; i < samples; ++i) round.times.wall_ns.push_back(ns += 0.25);
    round.times.device_ns = round.times.wall_ns;
  }
  for (auto _ : state) {
    const Stopwatch watch;
    benchmark::DoNotOptimize(summarize(records, 1));
    state.SetIterationTime(watch.seconds() / (rounds * samples));
  }
}

BENCHMARK(sample_of_nothing)->Arg(1)->Arg(64)->UseManualTime()->Unit(benchmark::kNanosecond)->Iterations(200);
BENCHMARK(launch)->Iterations(50);
BENCHMARK_CAPTURE(round_of_a_case, memory, "memory/copy/n=1048576/f32/x1")
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(200);
BENCHMARK_CAPTURE(round_of_a_case, with_state, "optimizer/adamw/n=1048576/f32/x1")
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(50);
BENCHMARK(summary)->UseManualTime()->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace gpubench

BENCHMARK_MAIN();
