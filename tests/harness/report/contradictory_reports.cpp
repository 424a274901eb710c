#include "tests/harness/report/malformed_reports.h"

namespace gpubench {
namespace {

Json& first(Json& report) { return report["gpubench"]["cases"][0]; }
Json& run(Json& report) { return report["context"]["gpubench"]; }

}  // namespace

std::vector<MalformedFile> contradictory_reports() {
  struct WrongValue {
    const char* name;
    const char* path;
    Json value;
    const char* why;
    const char* told_at = path;
  };
  struct Contradiction {
    const char* name;
    void (*change)(Json&);
    const char* path;
    const char* why;
  };
  const std::vector<WrongValue> wrong_values{
      {"an id of other parts", "gpubench.cases[0].recipe", "f32", "does not match", "gpubench.cases[0].id"},
      {"an id in capitals", "gpubench.cases[0].suite", "GEMM", "outside [a-z0-9", "gpubench.cases[0]"},
      {"an id of 201 characters", "gpubench.cases[0].suite", std::string(180, 'a'), "longer than 200",
       "gpubench.cases[0]"},
      {"a hash of another kind", "gpubench.cases[0].def_hash", "0123456789ABCDEF", "is not 16 characters of 0-9 a-f"},
      {"a hash that is too short", "gpubench.cases[0].def_hash", "0123456789abcde", "is not 16 characters of 0-9 a-f"},
      {"a clock locked at nothing", "context.gpubench.locked_clock_mhz", 0, "is 0, expected 1"},
      {"a verdict that nobody knows", "gpubench.cases[0].status", "ok", "is not one of pass, fail"},
      {"a pass of which nothing was judged", "gpubench.cases[0].parity.ops", Json::array(), "",
       "gpubench.cases[0].parity"},
      {"a pass with a reason", "gpubench.cases[0].reason", "almost", "although the case passed"},
      {"a failure without a reason", "gpubench.cases[1].reason", "", "although the case did not pass"},
      {"a failure told as a skip", "gpubench.cases[1].status", "skipped", "is skipped, but an op's is fail"},
      {"a pass without rounds", "gpubench.cases[0].rounds", Json::array(), "is empty"},
      {"a pass in batches of 0", "gpubench.cases[0].batch", 0, "is 0"},
      {"a pass on no copy", "gpubench.cases[0].copies", 0, "is 0"},
      {"more judged than there is", "gpubench.cases[0].parity.ops[0].judged", 5000, "is 5000 of 4096"},
      {"nothing judged", "gpubench.cases[0].parity.ops[0].judged", 0, "is 0, although"},
      {"more bad than judged", "gpubench.cases[1].parity.ops[1].bad", 65, "is 65 of 64"},
      {"bad elements in a pass", "gpubench.cases[0].parity.ops[0].bad", 1, "although the op passed"},
      {"an error above its bound in a pass", "gpubench.cases[0].parity.ops[0].error_over_bound", 1.01,
       "although the op passed"},
      {"a mutation that was accepted", "gpubench.cases[0].parity.ops[0].mutations_rejected", 3, "must reject all"},
      {"a phase that nobody knows", "gpubench.cases[0].parity.ops[0].phase", "after", "check, timed, recheck"},
      {"an op without a label", "gpubench.cases[0].parity.ops[0].label", "", "is empty"},
      {"a smaller error than its ops'", "gpubench.cases[0].parity.error_over_bound", 0.1,
       "the largest of its ops is 0.25"},
      {"a worst op that was not judged", "gpubench.cases[0].parity.worst_op", "other",
       "not an op with the largest error"},
      {"more judged in sums than there is", "gpubench.cases[0].parity.passed[0].judged", 8193,
       "is 8193 of 8192 elements of 2 ops"},
      {"fewer judged in sums than ops", "gpubench.cases[0].parity.passed[0].judged", 1,
       "is 1 of 8192 elements of 2 ops"},
      {"fewer mutations in sums than ops", "gpubench.cases[0].parity.passed[0].mutations", 1,
       "is 1, expected at least 2"},
      {"an error in sums above those of its phase", "gpubench.cases[0].parity.passed[0].error_over_bound", 0.26,
       "the largest of its phase in ops"},
      {"sums of a phase of which no op is kept", "gpubench.cases[0].parity.passed[0].phase", "check",
       "the largest of its phase in ops", "gpubench.cases[0].parity.passed[0].error_over_bound"},
      {"an invalid round without a note", "gpubench.cases[0].rounds[1].valid", false, "needs a reason",
       "gpubench.cases[0].rounds[1].note"},
      {"a sample of 0 ns", "gpubench.cases[0].rounds[0].device_ns[1]", 0, "cannot be a time"},
      {"a negative sample", "gpubench.cases[0].rounds[0].wall_ns[2]", -4700, "cannot be a time"},
      {"a valid round without samples", "gpubench.cases[0].rounds[1].device_ns", Json::array(), "is empty"},
      {"ranks slower than the case", "gpubench.cases[0].rounds[0].ranks[1].ns[0]", 5000, "as the longest of sample 0",
       "gpubench.cases[0].rounds[0].ranks"},
      {"a faster sample", "gpubench.cases[0].rounds[1].device_ns[0]", 7900, "its samples make",
       "gpubench.cases[0].summary"},
      {"a better median", "gpubench.cases[0].summary.median_ns", 2999.0, "its samples make 2900"},
      {"a narrower interval", "gpubench.cases[0].summary.ci95_high_ns", 3000.0, "its samples make"},
      {"a lower minimum", "gpubench.cases[0].summary.min_ns", 1.0, "its samples make 1900"},
      {"more rounds than there are", "gpubench.cases[0].summary.rounds", 3, "its samples make 2"},
      {"more samples than there are", "gpubench.cases[0].summary.samples", 60, "its samples make 6"},
      {"a severe sample hidden", "gpubench.cases[0].summary.severe", 4, "its samples make"},
      {"a flag left out", "gpubench.cases[0].summary.flags", Json::array(), "lacks \"noisy\""},
      {"another drift", "gpubench.cases[0].summary.drift", 0.5, "its samples make"},
      {"a higher rate", "gpubench.cases[0].derived.flop_per_s", 1e15, "work and median make"},
      {"a higher bandwidth", "gpubench.cases[0].derived.bytes_per_s", 1e15, "work and median make"},
      {"another headline", "gpubench.cases[0].derived.headline", 1e15, "the rate of that unit is"},
      {"a unit that nobody knows", "gpubench.cases[0].derived.headline_unit", "TFLOPS",
       "expected FLOP/s, B/s or tokens/s"},
      {"another share", "gpubench.cases[0].derived.breakdown[0].share", 0.5, "the medians make"},
      {"nearer to the peak", "gpubench.cases[0].derived.peak.of_peak", 0.99, "rate over peak is"},
      {"a pass more", "gpubench.totals.pass", 2, "the cases make 1"},
      {"a failure less", "gpubench.totals.fail", 0, "the cases make 1"},
      {"a case more", "gpubench.totals.cases", 4, "the cases make 3"},
      {"less time", "gpubench.totals.time_s", 0.5, "the cases make 1"},
      {"a call more in all", "gpubench.calls_totals[0].calls", 50, "the cases make 49"},
      {"a benchmark of nobody", "benchmarks[0].name", "fast", "neither a round nor a median", "benchmarks[0]"},
      {"no benchmarks", "benchmarks", Json::array(), "lacks \""},
      {"a faster round", "benchmarks[0].real_time", 1.0, "is 1, but its case makes 2"},
      {"a round in other units", "benchmarks[0].time_unit", "ns", "is not \"us\""},
      {"other iterations", "benchmarks[0].iterations", 1, "is 1, but its case makes 6"},
      {"a faster median", "benchmarks[2].real_time", 1.0, "its case makes 2.9"},
      {"checked, though nothing was", "context.gpubench.check", "off", "nothing was checked",
       "gpubench.cases[0].status"},
      {"unverified, though checked", "gpubench.cases[2].status", "unverified", "although the check was on"},
      {"no suites", "context.gpubench.suites", Json::array(), "is empty"},
      {"no devices", "context.gpubench.devices", Json::array(), "is empty"},
      {"an unknown tier", "context.gpubench.tier", "huge", "smoke, quick"},
      {"an unknown preset", "context.gpubench.preset", "huge", "minimal, brief"},
      {"an unknown check", "context.gpubench.check", "some", "off, sample, bitwise, own, full"},
      {"a time of another kind", "context.gpubench.started_at", "yesterday", "is not a time"},
      {"a 30th of February", "context.gpubench.finished_at", "2026-02-30T00:00:00+00:00", "is not a time"},
      {"a date of another run", "context.date", "2026-11-20T02:34:19+00:00", "is not when the run started"},
      {"Google's version as ours", "context.json_schema_version", 2, "expected 1 to 1"},
      {"no processors", "context.num_cpus", 0, "expected 1 to"},
      {"cache of level 0", "context.caches[0].level", 0, "expected 1 to"},
  };
  const std::vector<Contradiction> contradictions{
      {"two cases of one id", [](Json& j) { j["gpubench"]["cases"].push_back(first(j)); }, "gpubench.cases[3].id",
       "as is cases[0]"},
      {"a suite with a slash",
       [](Json& j) {
         run(j)["suites"] = {"gemm", "conv/forward"};
         j["gpubench"]["cases"][2]["suite"] = "conv/forward";
         j["gpubench"]["cases"][2]["workload"] = "n";
         j["gpubench"]["cases"][2]["id"] = "conv/forward/n/n=1/f32/x1";
       },
       "gpubench.cases[2].suite", "cannot be a part of an id"},
      {"no workload",
       [](Json& j) {
         j["gpubench"]["cases"][2]["workload"] = "";
         j["gpubench"]["cases"][2]["id"] = "conv//n=1/f32/x1";
       },
       "gpubench.cases[2].workload", "is empty"},
      {"a partner that there is not",
       [](Json& j) {
         first(j)["derived"]["ranks"]["partners"] = {1, 2};
       },
       "gpubench.cases[0].derived.ranks.partners", "is not a valid pairing of 2 ranks"},
      {"a partner who has another",
       [](Json& j) {
         first(j)["derived"]["ranks"]["partners"] = {1, 1};
       },
       "gpubench.cases[0].derived.ranks.partners", "is not a valid pairing of 2 ranks"},
      {"no dimensions",
       [](Json& j) {
         j["gpubench"]["cases"][2]["params"] = Json::object();
         j["gpubench"]["cases"][2]["id"] = "conv/forward//f32/x1";
       },
       "gpubench.cases[2].params", "is empty"},
      {"no ranks",
       [](Json& j) {
         j["gpubench"]["cases"][2]["ranks"] = 0;
         j["gpubench"]["cases"][2]["id"] = "conv/forward/n=1/f32/x0";
       },
       "gpubench.cases[2].ranks", "is 0, expected 1"},
      {"a pass with an op that failed",
       [](Json& j) {
         first(j)["parity"]["ops"][1]["status"] = "fail";
         first(j)["parity"]["ops"][1]["reason"] = "wrong";
       },
       "gpubench.cases[0].status", "is pass, but an op's is fail"},
      {"an infinite error in a pass",
       [](Json& j) {
         first(j)["parity"]["ops"][0]["error_over_bound"] = nullptr;
         first(j)["parity"]["ops"][0]["nonfinite"] = {{"error_over_bound", "inf"}};
       },
       "gpubench.cases[0].parity.ops[0].error_over_bound", "although the op passed"},
      {"a NaN error in a pass",
       [](Json& j) {
         first(j)["parity"]["ops"][0]["error_over_bound"] = nullptr;
         first(j)["parity"]["ops"][0]["nonfinite"] = {{"error_over_bound", "nan"}};
       },
       "gpubench.cases[0].parity.ops[0].error_over_bound", "although the op passed"},
      {"an element far from its value in a pass",
       [](Json& j) {
         first(j)["parity"]["ops"][0]["worst"] = {
             {"tensor", "c"}, {"index", {0, 0}}, {"got", 1e6}, {"want", 4.78}, {"bound", 4.6e-6}};
       },
       "gpubench.cases[0].parity.ops[0].worst.got", "although the op passed"},
      {"an element that is NaN in a pass",
       [](Json& j) {
         first(j)["parity"]["ops"][0]["worst"] = {{"tensor", "c"},  {"index", {0, 0}},
                                                  {"got", nullptr}, {"nonfinite", {{"got", "nan"}}},
                                                  {"want", 4.78},   {"bound", 4.6e-6}};
       },
       "gpubench.cases[0].parity.ops[0].worst.got", "although the op passed"},
      {"no mutations",
       [](Json& j) {
         first(j)["parity"]["ops"][0]["mutations"] = 0;
         first(j)["parity"]["ops"][0]["mutations_rejected"] = 0;
       },
       "gpubench.cases[0].parity.ops[0].mutations_rejected", "must reject all"},
      {"an unfinished case that passed",
       [](Json& j) {
         first(j)["unfinished"] = {{"why", "SIGTERM"},
                                   {"checked", "nothing"},
                                   {"implementation", "onednn"},
                                   {"batch", 1},
                                   {"rounds", first(j)["rounds"]}};
       },
       "gpubench.cases[0].unfinished", "although the case was not skipped"},
      {"a worst op without the largest error",
       [](Json& j) {
         Json& parity = first(j)["parity"];
         parity["ops"][1]["label"] = parity["worst_op"] = "other";
         parity["ops"][1]["error_over_bound"] = 0.125;
       },
       "gpubench.cases[0].parity.worst_op", "with the largest error"},
      {"two sums of one kind",
       [](Json& j) {
         Json& passed = first(j)["parity"]["passed"];
         passed.push_back(passed[0]);
       },
       "gpubench.cases[0].parity.passed[1].kind", "is there twice"},
      {"times of ops that don't make the remainder",
       [](Json& j) { first(j)["derived"]["remainder"] = first(j)["derived"]["remainder"].get<double>() + 0.01; },
       "gpubench.cases[0].derived.remainder", "the medians make"},
      {"an error in sums above its bound",
       [](Json& j) {
         Json& passed = j["gpubench"]["cases"][1]["parity"]["passed"][0];
         passed["phase"] = "timed";  // in which an op failed with 3.5
         passed["error_over_bound"] = 1.25;
       },
       "gpubench.cases[1].parity.passed[0].error_over_bound", "is 1.25, expected at most 1"},
      {"an infinite sample",
       [](Json& j) {
         first(j)["rounds"][0]["device_ns"][0] = nullptr;
         first(j)["rounds"][0]["nonfinite"] = {{"device_ns[0]", "inf"}};
       },
       "gpubench.cases[0].rounds[0].device_ns[0]", "cannot be a time"},
      {"a sample without its wall time", [](Json& j) { first(j)["rounds"][0]["wall_ns"].erase(0); },
       "gpubench.cases[0].rounds[0].wall_ns", "has 2 samples, device_ns has 3"},
      {"a rank too many", [](Json& j) { first(j)["rounds"][0]["ranks"].push_back(first(j)["rounds"][0]["ranks"][0]); },
       "gpubench.cases[0].rounds[0].ranks", "the case has 2 ranks"},
      {"a rank that lacks a sample", [](Json& j) { first(j)["rounds"][0]["ranks"][1]["ns"].erase(0); },
       "gpubench.cases[0].rounds[0].ranks[1].ns", "has 2 samples"},
      {"a note that nobody knows",
       [](Json& j) {
         first(j)["summary"]["drift"] = nullptr;
         first(j)["summary"]["nonfinite"] = {{"drift", "maybe"}};
       },
       "gpubench.cases[0].summary", "does not say which"},
      {"no sum of the calls", [](Json& j) { j["gpubench"].erase("calls_totals"); }, "gpubench",
       "has 0 calls_totals, but the cases make 1"},
      {"a case cut out", [](Json& j) { j["gpubench"]["cases"].erase(1); }, "gpubench.totals", "the cases make"},
      {"a benchmark that failed",
       [](Json& j) {
         Json entry = j["benchmarks"][0];
         entry["name"] = "gemm/other/m=64,n=32,k=16/bf16/warm/x2";
         j["benchmarks"].push_back(entry);
       },
       "benchmarks[3]", "neither a round nor a median of a passing case"},
      {"a round twice", [](Json& j) { j["benchmarks"].push_back(j["benchmarks"][1]); }, "benchmarks[3]", "again"},
      {"a round missing", [](Json& j) { j["benchmarks"].erase(1); }, "benchmarks", "lacks \""},
      {"a suite that was not run", [](Json& j) { run(j)["suites"] = {"gemm"}; }, "gpubench.cases[2].suite",
       "not among the suites"},
      {"four loads",
       [](Json& j) {
         j["context"]["load_avg"] = {1, 1, 1, 1};
       },
       "context.load_avg", "at most 3"},
  };
  std::vector<MalformedFile> files;
  for (const WrongValue& w : wrong_values)
    files.push_back({w.name, changed_report([&](Json& j) { j[pointer_to(w.path)] = w.value; }), w.told_at, w.why});
  for (const Contradiction& c : contradictions) files.push_back({c.name, changed_report(c.change), c.path, c.why});
  return files;
}

}  // namespace gpubench
