// contradictory_reports(): each by hand.
#include <fmt/format.h>

#include "harness/report/json.h"
#include "tests/harness/report/holding_report.h"
#include "tests/harness/report/malformed_reports.h"

namespace gpubench {
namespace {

using Change = void (*)(Json&);

std::string changed(Change change) {
  Json report = report_json(holding_report());
  change(report);
  return report.dump();
}

Json& first(Json& report) { return report["gpubench"]["cases"][0]; }
Json& run(Json& report) { return report["context"]["gpubench"]; }

}  // namespace

std::vector<MalformedFile> contradictory_reports() {
  struct Contradiction {
    const char* name;
    Change change;
    const char* path;
    const char* why;
  };
  const std::vector<Contradiction> contradictions{
      {"two cases of one id", [](Json& j) { j["gpubench"]["cases"].push_back(first(j)); }, "gpubench.cases[3].id",
       "as is cases[0]"},
      {"an id of other parts", [](Json& j) { first(j)["recipe"] = "f32"; }, "gpubench.cases[0].id", "does not match"},
      {"an id in capitals", [](Json& j) { first(j)["suite"] = "GEMM"; }, "gpubench.cases[0]", "outside [a-z0-9"},
      {"an id of 201 characters", [](Json& j) { first(j)["suite"] = std::string(180, 'a'); }, "gpubench.cases[0]",
       "longer than 200"},
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
       "gpubench.cases[0].derived.ranks.partners", "is not who exchanges with whom of 2 ranks"},
      {"a partner who has another",
       [](Json& j) {
         first(j)["derived"]["ranks"]["partners"] = {1, 1};
       },
       "gpubench.cases[0].derived.ranks.partners", "is not who exchanges with whom of 2 ranks"},
      {"no dimensions",
       [](Json& j) {
         j["gpubench"]["cases"][2]["params"] = Json::object();
         j["gpubench"]["cases"][2]["id"] = "conv/forward//f32/x1";
       },
       "gpubench.cases[2].params", "is empty"},
      {"a hash of another kind", [](Json& j) { first(j)["def_hash"] = "0123456789ABCDEF"; },
       "gpubench.cases[0].def_hash", "is not 16 characters of 0-9 a-f"},
      {"a hash that is too short", [](Json& j) { first(j)["def_hash"] = "0123456789abcde"; },
       "gpubench.cases[0].def_hash", "is not 16 characters of 0-9 a-f"},
      {"a clock locked at nothing", [](Json& j) { run(j)["locked_clock_mhz"] = 0; },
       "context.gpubench.locked_clock_mhz", "is 0, expected 1"},
      {"no ranks",
       [](Json& j) {
         j["gpubench"]["cases"][2]["ranks"] = 0;
         j["gpubench"]["cases"][2]["id"] = "conv/forward/n=1/f32/x0";
       },
       "gpubench.cases[2].ranks", "is 0, expected 1"},
      {"a verdict that nobody knows", [](Json& j) { first(j)["status"] = "ok"; }, "gpubench.cases[0].status",
       "is not one of pass, fail"},
      {"a pass with an op that failed",
       [](Json& j) {
         first(j)["parity"]["ops"][1]["status"] = "fail";
         first(j)["parity"]["ops"][1]["reason"] = "wrong";
       },
       "gpubench.cases[0].status", "is pass, but an op's is fail"},
      {"a pass of which nothing was judged", [](Json& j) { first(j)["parity"]["ops"] = Json::array(); },
       "gpubench.cases[0].parity", ""},
      {"a pass with a reason", [](Json& j) { first(j)["reason"] = "almost"; }, "gpubench.cases[0].reason",
       "although the case passed"},
      {"a failure without a reason", [](Json& j) { j["gpubench"]["cases"][1]["reason"] = ""; },
       "gpubench.cases[1].reason", "although the case did not pass"},
      {"a failure told as a skip", [](Json& j) { j["gpubench"]["cases"][1]["status"] = "skipped"; },
       "gpubench.cases[1].status", "is skipped, but an op's is fail"},
      {"a pass without rounds", [](Json& j) { first(j)["rounds"] = Json::array(); }, "gpubench.cases[0].rounds",
       "is empty"},
      {"a pass in batches of 0", [](Json& j) { first(j)["batch"] = 0; }, "gpubench.cases[0].batch", "is 0"},
      {"a pass on no copy", [](Json& j) { first(j)["copies"] = 0; }, "gpubench.cases[0].copies", "is 0"},
      {"more judged than there is", [](Json& j) { first(j)["parity"]["ops"][0]["judged"] = 5000; },
       "gpubench.cases[0].parity.ops[0].judged", "is 5000 of 4096"},
      {"nothing judged", [](Json& j) { first(j)["parity"]["ops"][0]["judged"] = 0; },
       "gpubench.cases[0].parity.ops[0].judged", "is 0, although"},
      {"more bad than judged", [](Json& j) { j["gpubench"]["cases"][1]["parity"]["ops"][1]["bad"] = 65; },
       "gpubench.cases[1].parity.ops[1].bad", "is 65 of 64"},
      {"bad elements in a pass", [](Json& j) { first(j)["parity"]["ops"][0]["bad"] = 1; },
       "gpubench.cases[0].parity.ops[0].bad", "although the op passed"},
      {"an error above its bound in a pass", [](Json& j) { first(j)["parity"]["ops"][0]["error_over_bound"] = 1.01; },
       "gpubench.cases[0].parity.ops[0].error_over_bound", "although the op passed"},
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
      {"a mutation that was accepted", [](Json& j) { first(j)["parity"]["ops"][0]["mutations_rejected"] = 3; },
       "gpubench.cases[0].parity.ops[0].mutations_rejected", "proves nothing"},
      {"no mutations",
       [](Json& j) {
         first(j)["parity"]["ops"][0]["mutations"] = 0;
         first(j)["parity"]["ops"][0]["mutations_rejected"] = 0;
       },
       "gpubench.cases[0].parity.ops[0].mutations_rejected", "proves nothing"},
      {"an unfinished case that passed",
       [](Json& j) {
         first(j)["unfinished"] = {{"why", "SIGTERM"},
                                   {"checked", "nothing"},
                                   {"implementation", "onednn"},
                                   {"batch", 1},
                                   {"rounds", first(j)["rounds"]}};
       },
       "gpubench.cases[0].unfinished", "although the case was not skipped"},
      {"a phase that nobody knows", [](Json& j) { first(j)["parity"]["ops"][0]["phase"] = "after"; },
       "gpubench.cases[0].parity.ops[0].phase", "check, timed, recheck"},
      {"an op without a label", [](Json& j) { first(j)["parity"]["ops"][0]["label"] = ""; },
       "gpubench.cases[0].parity.ops[0].label", "is empty"},
      {"a smaller error than its ops'", [](Json& j) { first(j)["parity"]["error_over_bound"] = 0.1; },
       "gpubench.cases[0].parity.error_over_bound", "the largest of its ops is 0.25"},
      {"a worst op that was not judged", [](Json& j) { first(j)["parity"]["worst_op"] = "other"; },
       "gpubench.cases[0].parity.worst_op", "not an op with the largest error"},
      {"a worst op without the largest error",
       [](Json& j) {
         Json& parity = first(j)["parity"];
         parity["ops"][1]["label"] = parity["worst_op"] = "other";
         parity["ops"][1]["error_over_bound"] = 0.125;
       },
       "gpubench.cases[0].parity.worst_op", "with the largest error"},
      {"more judged in sums than there is", [](Json& j) { first(j)["parity"]["passed"][0]["judged"] = 8193; },
       "gpubench.cases[0].parity.passed[0].judged", "is 8193 of 8192 elements of 2 ops"},
      {"two sums of one kind",
       [](Json& j) {
         Json& passed = first(j)["parity"]["passed"];
         passed.push_back(passed[0]);
       },
       "gpubench.cases[0].parity.passed[1].kind", "is there twice"},
      {"times of ops that don't make the remainder",
       [](Json& j) { first(j)["derived"]["remainder"] = first(j)["derived"]["remainder"].get<double>() + 0.01; },
       "gpubench.cases[0].derived.remainder", "the medians make"},
      {"fewer judged in sums than ops", [](Json& j) { first(j)["parity"]["passed"][0]["judged"] = 1; },
       "gpubench.cases[0].parity.passed[0].judged", "is 1 of 8192 elements of 2 ops"},
      {"fewer mutations in sums than ops", [](Json& j) { first(j)["parity"]["passed"][0]["mutations"] = 1; },
       "gpubench.cases[0].parity.passed[0].mutations", "is 1, expected at least 2"},
      {"an error in sums above its bound",
       [](Json& j) {
         Json& passed = j["gpubench"]["cases"][1]["parity"]["passed"][0];
         passed["phase"] = "timed";  // in which an op failed with 3.5
         passed["error_over_bound"] = 1.25;
       },
       "gpubench.cases[1].parity.passed[0].error_over_bound", "is 1.25, expected at most 1"},
      {"an error in sums above those of its phase",
       [](Json& j) { first(j)["parity"]["passed"][0]["error_over_bound"] = 0.26; },
       "gpubench.cases[0].parity.passed[0].error_over_bound", "the largest of its phase in ops"},
      {"sums of a phase of which no op is kept", [](Json& j) { first(j)["parity"]["passed"][0]["phase"] = "check"; },
       "gpubench.cases[0].parity.passed[0].error_over_bound", "the largest of its phase in ops"},
      {"an invalid round without a note", [](Json& j) { first(j)["rounds"][1]["valid"] = false; },
       "gpubench.cases[0].rounds[1].note", "says why"},
      {"a sample of 0 ns", [](Json& j) { first(j)["rounds"][0]["device_ns"][1] = 0; },
       "gpubench.cases[0].rounds[0].device_ns[1]", "cannot be a time"},
      {"a negative sample", [](Json& j) { first(j)["rounds"][0]["wall_ns"][2] = -4700; },
       "gpubench.cases[0].rounds[0].wall_ns[2]", "cannot be a time"},
      {"an infinite sample",
       [](Json& j) {
         first(j)["rounds"][0]["device_ns"][0] = nullptr;
         first(j)["rounds"][0]["nonfinite"] = {{"device_ns[0]", "inf"}};
       },
       "gpubench.cases[0].rounds[0].device_ns[0]", "cannot be a time"},
      {"a sample without its wall time", [](Json& j) { first(j)["rounds"][0]["wall_ns"].erase(0); },
       "gpubench.cases[0].rounds[0].wall_ns", "has 2 samples, device_ns has 3"},
      {"a valid round without samples", [](Json& j) { first(j)["rounds"][1]["device_ns"] = Json::array(); },
       "gpubench.cases[0].rounds[1].device_ns", "is empty"},
      {"a rank too many", [](Json& j) { first(j)["rounds"][0]["ranks"].push_back(first(j)["rounds"][0]["ranks"][0]); },
       "gpubench.cases[0].rounds[0].ranks", "the case has 2 ranks"},
      {"a rank that lacks a sample", [](Json& j) { first(j)["rounds"][0]["ranks"][1]["ns"].erase(0); },
       "gpubench.cases[0].rounds[0].ranks[1].ns", "has 2 samples"},
      {"ranks slower than the case", [](Json& j) { first(j)["rounds"][0]["ranks"][1]["ns"][0] = 5000; },
       "gpubench.cases[0].rounds[0].ranks", "as the longest of sample 0"},
      {"a faster sample", [](Json& j) { first(j)["rounds"][1]["device_ns"][0] = 7900; }, "gpubench.cases[0].summary",
       "its samples make"},
      {"a better median", [](Json& j) { first(j)["summary"]["median_ns"] = 2999.0; },
       "gpubench.cases[0].summary.median_ns", "its samples make 2900"},
      {"a narrower interval", [](Json& j) { first(j)["summary"]["ci95_high_ns"] = 3000.0; },
       "gpubench.cases[0].summary.ci95_high_ns", "its samples make"},
      {"a lower minimum", [](Json& j) { first(j)["summary"]["min_ns"] = 1.0; }, "gpubench.cases[0].summary.min_ns",
       "its samples make 1900"},
      {"more rounds than there are", [](Json& j) { first(j)["summary"]["rounds"] = 3; },
       "gpubench.cases[0].summary.rounds", "its samples make 2"},
      {"more samples than there are", [](Json& j) { first(j)["summary"]["samples"] = 60; },
       "gpubench.cases[0].summary.samples", "its samples make 6"},
      {"a severe sample hidden", [](Json& j) { first(j)["summary"]["severe"] = 4; }, "gpubench.cases[0].summary.severe",
       "its samples make"},
      {"a flag left out", [](Json& j) { first(j)["summary"]["flags"] = Json::array(); },
       "gpubench.cases[0].summary.flags", "lacks \"noisy\""},
      {"another drift", [](Json& j) { first(j)["summary"]["drift"] = 0.5; }, "gpubench.cases[0].summary.drift",
       "its samples make"},
      {"a higher rate", [](Json& j) { first(j)["derived"]["flop_per_s"] = 1e15; },
       "gpubench.cases[0].derived.flop_per_s", "work and median make"},
      {"a higher bandwidth", [](Json& j) { first(j)["derived"]["bytes_per_s"] = 1e15; },
       "gpubench.cases[0].derived.bytes_per_s", "work and median make"},
      {"another headline", [](Json& j) { first(j)["derived"]["headline"] = 1e15; },
       "gpubench.cases[0].derived.headline", "the rate of that unit is"},
      {"a unit that nobody knows", [](Json& j) { first(j)["derived"]["headline_unit"] = "TFLOPS"; },
       "gpubench.cases[0].derived.headline_unit", "expected FLOP/s, B/s or tokens/s"},
      {"another share", [](Json& j) { first(j)["derived"]["breakdown"][0]["share"] = 0.5; },
       "gpubench.cases[0].derived.breakdown[0].share", "the medians make"},
      {"nearer to the peak", [](Json& j) { first(j)["derived"]["peak"]["of_peak"] = 0.99; },
       "gpubench.cases[0].derived.peak.of_peak", "rate over peak is"},
      {"a note that nobody knows",
       [](Json& j) {
         first(j)["summary"]["drift"] = nullptr;
         first(j)["summary"]["nonfinite"] = {{"drift", "maybe"}};
       },
       "gpubench.cases[0].summary", "does not say which"},
      {"a pass more", [](Json& j) { j["gpubench"]["totals"]["pass"] = 2; }, "gpubench.totals.pass", "the cases make 1"},
      {"a failure less", [](Json& j) { j["gpubench"]["totals"]["fail"] = 0; }, "gpubench.totals.fail",
       "the cases make 1"},
      {"a case more", [](Json& j) { j["gpubench"]["totals"]["cases"] = 4; }, "gpubench.totals.cases",
       "the cases make 3"},
      {"less time", [](Json& j) { j["gpubench"]["totals"]["time_s"] = 0.5; }, "gpubench.totals.time_s",
       "the cases make 1"},
      {"a call more in all", [](Json& j) { j["gpubench"]["calls_totals"][0]["calls"] = 50; },
       "gpubench.calls_totals[0].calls", "the cases make 49"},
      {"no sum of the calls", [](Json& j) { j["gpubench"].erase("calls_totals"); }, "gpubench",
       "has 0 calls_totals, but the cases make 1"},
      {"a case cut out", [](Json& j) { j["gpubench"]["cases"].erase(1); }, "gpubench.totals", "the cases make"},
      {"a benchmark that failed",
       [](Json& j) {
         Json entry = j["benchmarks"][0];
         entry["name"] = "gemm/other/m=64,n=32,k=16/bf16/warm/x2";
         j["benchmarks"].push_back(entry);
       },
       "benchmarks[3]", "no round and no median of a case that passed"},
      {"a benchmark of nobody", [](Json& j) { j["benchmarks"][0]["name"] = "fast"; }, "benchmarks[0]",
       "no round and no median"},
      {"a round twice", [](Json& j) { j["benchmarks"].push_back(j["benchmarks"][1]); }, "benchmarks[3]", "once more"},
      {"a round missing", [](Json& j) { j["benchmarks"].erase(1); }, "benchmarks", "lacks \""},
      {"no benchmarks", [](Json& j) { j["benchmarks"] = Json::array(); }, "benchmarks", "lacks \""},
      {"a faster round", [](Json& j) { j["benchmarks"][0]["real_time"] = 1.0; }, "benchmarks[0].real_time",
       "is 1, but its case makes 2"},
      {"a round in other units", [](Json& j) { j["benchmarks"][0]["time_unit"] = "ns"; }, "benchmarks[0].time_unit",
       "is not \"us\""},
      {"other iterations", [](Json& j) { j["benchmarks"][0]["iterations"] = 1; }, "benchmarks[0].iterations",
       "is 1, but its case makes 6"},
      {"a faster median", [](Json& j) { j["benchmarks"][2]["real_time"] = 1.0; }, "benchmarks[2].real_time",
       "its case makes 2.9"},
      {"checked, though nothing was", [](Json& j) { run(j)["check"] = "off"; }, "gpubench.cases[0].status",
       "nothing was checked"},
      {"unverified, though checked", [](Json& j) { j["gpubench"]["cases"][2]["status"] = "unverified"; },
       "gpubench.cases[2].status", "although the check was on"},
      {"a suite that was not run", [](Json& j) { run(j)["suites"] = {"gemm"}; }, "gpubench.cases[2].suite",
       "not among the suites"},
      {"no suites", [](Json& j) { run(j)["suites"] = Json::array(); }, "context.gpubench.suites", "is empty"},
      {"no devices", [](Json& j) { run(j)["devices"] = Json::array(); }, "context.gpubench.devices", "is empty"},
      {"an unknown tier", [](Json& j) { run(j)["tier"] = "huge"; }, "context.gpubench.tier", "smoke, quick"},
      {"an unknown preset", [](Json& j) { run(j)["preset"] = "huge"; }, "context.gpubench.preset", "minimal, brief"},
      {"an unknown check", [](Json& j) { run(j)["check"] = "some"; }, "context.gpubench.check",
       "off, sample, bitwise, own, full"},
      {"a time of another kind", [](Json& j) { run(j)["started_at"] = "yesterday"; }, "context.gpubench.started_at",
       "is no time"},
      {"a 30th of February", [](Json& j) { run(j)["finished_at"] = "2026-02-30T00:00:00+00:00"; },
       "context.gpubench.finished_at", "is no time"},
      {"a date of another run", [](Json& j) { j["context"]["date"] = "2026-11-20T02:34:19+00:00"; }, "context.date",
       "is not when the run started"},
      {"Google's version as ours", [](Json& j) { j["context"]["json_schema_version"] = 2; },
       "context.json_schema_version", "expected 1 to 1"},
      {"four loads",
       [](Json& j) {
         j["context"]["load_avg"] = {1, 1, 1, 1};
       },
       "context.load_avg", "at most 3"},
      {"no processors", [](Json& j) { j["context"]["num_cpus"] = 0; }, "context.num_cpus", "expected 1 to"},
      {"cache of level 0", [](Json& j) { j["context"]["caches"][0]["level"] = 0; }, "context.caches[0].level",
       "expected 1 to"},
  };
  std::vector<MalformedFile> files;
  for (const Contradiction& c : contradictions) files.push_back({c.name, changed(c.change), c.path, c.why});
  return files;
}

}  // namespace gpubench
