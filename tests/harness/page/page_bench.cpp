// Times of reading report.json and of drawing its page, at the size of --suite all on a laptop and on a GPU.
#include <benchmark/benchmark.h>

#include "harness/page/report_page.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/harness/page/made_cases.h"

namespace {

using namespace gpubench;

void read_and_draw(benchmark::State& state) {
  const std::string text = dump(report_json(page::large_report(static_cast<int>(state.range(0)))), 1);
  for (auto _ : state) {
    Problems problems;
    const std::vector<Report> reports{report_from_json(parse_json(text, "made"), "made", problems)};
    benchmark::DoNotOptimize(page::report_page(reports));
  }
  state.counters["report_MB"] = static_cast<double>(text.size()) * 1e-6;
}
BENCHMARK(read_and_draw)->Arg(170)->Arg(1000)->Unit(benchmark::kMillisecond);

void draw(benchmark::State& state) {
  const std::vector<Report> reports{page::large_report(static_cast<int>(state.range(0)))};
  std::size_t bytes = 0;
  for (auto _ : state) bytes = page::report_page(reports).size();
  state.counters["page_kB"] = static_cast<double>(bytes) * 1e-3;
}
BENCHMARK(draw)->Arg(170)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
