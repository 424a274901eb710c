// How long compare and gate take over reports of 10,000 cases, from the files to the verdicts:
//   large_reports_bench --write a.json 1; large_reports_bench --write b.json 2; large_reports_bench a.json b.json
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "harness/compare/baseline.h"
#include "harness/compare/comparison.h"
#include "harness/compare/gate.h"
#include "harness/report/json.h"
#include "tests/harness/compare/made_reports.h"

namespace {

using namespace gpubench;

constexpr int cases = 10000;

void write_report(const std::string& file, int second) {
  std::mt19937_64 bits(second);
  std::normal_distribution<double> noise(0.0, 0.01);
  std::vector<CaseRecord> records;
  for (int i = 0; i < cases; ++i) {
    CaseRecord record = timed_record(fmt::format("w{}", i), 1000.0);
    for (RoundRecord& round : record.rounds) {
      for (double& ns : round.times.device_ns) ns = std::round(4e4 * (1.0 + noise(bits))) / 10.0;
    }
    records.push_back(std::move(record));
  }
  std::ofstream(file) << sealed_text(report_json(timed_report(std::move(records), second)), 1);
}

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  // In another process, whose memory does not count.
  if (argc == 4 && std::string(argv[1]) == "--write") {
    write_report(argv[2], std::stoi(argv[3]));
    return 0;
  }
  if (argc != 3) {
    std::fputs("usage: large_reports_bench --write FILE N | large_reports_bench A.json B.json\n", stderr);
    return 2;
  }
  std::vector<SideFile> sides;
  const double reading = seconds_of([&] {
    const std::vector<std::string> a{argv[1]}, b{argv[2]};
    const SidePaths both[] = {{"", a}, {"", b}};
    sides = read_sides(both);
  });
  const double comparing = seconds_of([&] { (void)compare(sides[0].invocations, sides[1].invocations, {}); });
  const double gating = seconds_of([&] { (void)run_gate(sides[0].invocations, sides[1].invocations, {}); });
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "%zu cases a side, %.0f MB a file: reading both %.2f s, compare %.2f s, gate %.2f s, %ld MB at the peak\n",
      sides[0].invocations.front().cases.size(), static_cast<double>(std::filesystem::file_size(argv[1])) * 1e-6,
      reading, comparing, gating, usage.ru_maxrss / 1000);
  return 0;
}
