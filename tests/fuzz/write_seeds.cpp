// Writes where the fuzzers begin: reports that hold and that do not, choices of earlier runs, noise and baselines,
// command lines, sizes, messages of workers, hostile text.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/compare/baseline.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "harness/run/wire.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/harness/report/holding_report.h"
#include "tests/harness/report/hostile_text.h"
#include "tests/harness/report/malformed_reports.h"

using namespace gpubench;

namespace {

void write(const std::filesystem::path& folder, const std::vector<std::string>& seeds) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::remove_all(folder);
  std::vector<std::string> reports{dump(report_json(holding_report())), sealed_text(report_json(holding_report()))};
  for (const MalformedFile& file : malformed_bytes()) {
    if (file.bytes.size() < 65536) reports.push_back(file.bytes);
  }
  for (const MalformedFile& file : contradictory_reports()) reports.push_back(file.bytes);
  write(folder / "report", reports);
  write(folder / "invocation", reports);
  const std::vector<Invocation> runs = side_of({1000, 1010, 1005});
  const Noise noise = noise_of(runs, "2026-11-21T02:34:19+00:00");
  const Json baseline = to_json(make_baseline("main", "2026-11-21T02:34:19+00:00", runs, noise));
  write(folder / "noise", {dump(to_json(noise)), dump(baseline), "{\"schema\": \"gpubench-noise\"}", "[]"});
  write(folder / "tuning_cache",
        {R"({"schema": "gpubench-tuning", "schema_version": 1, "setting": {"device": "A Device", "units": "0",
             "compute_capability": "", "library library": "1.0", "deterministic": "no", "gpubench": "0.1.0"},
             "choices": {"an op": "an implementation"}})",
         "{}", "[", R"({"schema": "gpubench-tuning", "schema_version": 2})"});
  write(folder / "argv", {"run\n--suite\ngemm,conv\n--tier=smoke\n-q", "list\n--format=json", "help\nrun", "--version",
                          "validate\na.json\nb.json", "export\n--format\ncsv\na.json\n-o\nb.csv", "--axis\nk=1,2\n-v"});
  // The first byte says how the rest is taken: even, as the bytes of a pipe; odd, as the body of a message.
  write(folder / "messages", {"0" + encode_frame({FrameKind::phase, "3 check"}) + encode_frame({FrameKind::done, ""}),
                              "0" + encode_frame({FrameKind::record, "17\nrecord"}).substr(0, 15),
                              "1" + encode_group({{0, "a/b/x1"}, {7, "c"}}), "117 check", "1"});
  std::vector<std::string> texts = hostile_texts();
  texts.insert(texts.end(), broken_texts().begin(), broken_texts().end());
  write(folder / "text", texts);
  write(folder / "filter",
        {"m=8,.*f32", "^memory/", "(.+)+Z", "((((", "m=(8", "[[:digit:]]{4}", "x[a-", "\\d+\\/", "(a{1000}){1000}"});
  write(folder / "sizes", {"k=256,512", "1,2,4", "8", "m=9223372036854775807", "=", "k=", "k=-1", "k=1,,2"});
  return 0;
}
