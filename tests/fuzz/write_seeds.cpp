// Writes the seeds of each fuzz target to a folder: valid and invalid reports, journals, tuning caches, noise and
// baselines, command lines, worker messages, answers of kernels, drivers and NVML, hostile text. Also writes the
// words of each format as libFuzzer's dictionaries, <target>.dict.
#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "harness/cli/device.h"
#include "harness/cli/finding_records.h"
#include "harness/cli/soak_log.h"
#include "harness/cli/verb.h"
#include "harness/compare/baseline.h"
#include "harness/report/content_digest.h"
#include "harness/report/journal.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "harness/run/wire.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/harness/report/hostile_text.h"
#include "tests/harness/report/malformed_reports.h"
#include "tests/harness/report/sample_records.h"

using namespace gpubench;

namespace {

using Texts = std::vector<std::string>;

class Seeds {
 public:
  explicit Seeds(const char* folder) : folder_(folder) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void write(const char* target, const Texts& seeds, const std::set<std::string>& words) const {
    std::filesystem::create_directories(folder_ / target);
    for (std::size_t i = 0; i < seeds.size(); ++i)
      std::ofstream(folder_ / target / std::to_string(i), std::ios::binary) << seeds[i];
    std::ofstream dictionary(folder_ / (std::string(target) + ".dict"));
    for (const std::string& word : words) {
      if (!word.empty() && word.size() <= 64) dictionary << quoted(word) << "\n";
    }
  }

 private:
  static std::string quoted(const std::string& word) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text = "\"";
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0) {
        text += c;
      } else {
        text += {'\\', 'x', digits[byte / 16U], digits[byte % 16U]};
      }
    }
    return text + '"';
  }
  std::filesystem::path folder_;
};

void add_legend(const Json& json, std::set<std::string>& words) {
  if (json.is_string()) words.insert(dump(json));
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) words.insert(dump(Json(key)) + ":");
    add_legend(value, words);
  }
}

std::set<std::string> words_of(const Texts& documents) {
  std::set<std::string> words{"null", "true", "false", "{}", "[]", "-1", "1e308", "9223372036854775807", "\"\""};
  for (const std::string& document : documents) add_legend(parse_json(document, "seed"), words);
  return words;
}

Texts reports() {
  Texts all{dump(report_json(holding_report())), sealed_text(report_json(holding_report()))};
  for (const MalformedFile& file : malformed_bytes()) {
    if (file.bytes.size() < 65536) all.push_back(file.bytes);
  }
  for (const MalformedFile& file : contradictory_reports()) all.push_back(file.bytes);
  return all;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string soak_entries() {
  SoakInterval interval{.at_s = 10.0, .seconds = 10.0, .device_s = 8.0, .launches = 100, .ops = 300};
  interval.telemetry.emplace();
  Divergence divergence{
      .at_s = 3.5, .case_id = "suite/work/n=8/f32/x1", .text = "op 'c': 1 of 64 differ", .left = {1, 2}};
  divergence.errors_now = {2, 0};
  DeviceInfo device;
  device.kind = "cpu";
  device.name = "a device";
  const auto of_device = [](Json content) {
    content["device"] = 0;
    return content;
  };
  const std::vector<std::pair<std::string, Json>> entries{
      {"start",
       {{"schema", soak_schema},
        {"schema_version", soak_schema_version},
        {"version", "0.1.0"},
        {"devices", {"cpu"}},
        {"seed", 42},
        {"seconds", 60.0},
        {"cases", Json::array()}}},
      {"opened", of_device(to_json(device))},
      {"cases", of_device({{"cases", {divergence.case_id}}, {"left_out", Json::array()}})},
      {"recheck", of_device({{"seconds", 1.5}})},
      {"interval", of_device(to_json(interval))},
      {"divergence", of_device(to_json(divergence))},
      {"wrong", of_device({{"text", "rejected"}})},
      {"vote", {{"text", "device 1 differs"}}},
      {"lost", of_device({{"text", "ended by signal 9 (Killed)"}})},
      {"end", {{"voted", 2}, {"not_compared", Json::array()}}}};
  std::string text = "1";
  for (std::size_t line = 0; line < entries.size(); ++line)
    text += dump({{"line", line}, {entries[line].first, entries[line].second}}) + "\n";
  return text;
}

// A case with two rounds, one of them finished; whole, torn, and as entries without checksums.
Texts journals() {
  const MemoryFolder folder;
  const std::string path = folder.path() + "/journal.jsonl";
  CaseRecord record = sample_record();
  {
    JournalWriter journal(path, {"0123456789abcdef", {"--tier", "smoke"}, {{"device.name", "a device"}}}, {});
    for (const int number : {1, 2}) {
      CaseRecord round = record;
      round.rounds.resize(1);
      round.summary.rounds = number;
      journal.round(round);
    }
    journal.finished(record);
    record.c.dims = {{"m", 8}};
    record.id = record.c.id();
    record.rounds.resize(1);
    record.summary.rounds = 1;
    journal.round(record);
  }
  const std::string text = content_of(path);
  std::string entries = "1";
  constexpr std::string_view before = "\"entry\":";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at), entry = text.find(before, at) + before.size();
    entries += text.substr(entry, end - 1 - entry) + "\n";
    at = end + 1;
  }
  return {"0" + text,
          "0" + text.substr(0, text.size() - 40),
          entries,
          entries.substr(0, entries.find('\n') + 1),
          entries.substr(0, entries.find('\n') + 1) + R"({"line":1,"resumed":true})",
          soak_entries()};
}

std::set<std::string> flags_and_values() {
  std::set<std::string> words{"on", "off", "auto", "smoke", "f32", "bf16", "cuda:1", "cpu", "5%", "10s", "-", "="};
  for (const Verb& verb : verbs()) {
    words.emplace(verb.name);
    for (const Flag& flag : verb.flags({})) {
      for (const std::string& name : flag.names()) {
        words.insert(name);
        words.insert(variable_of(name) + "=");
      }
    }
  }
  return words;
}

// In the order of the files in fuzz_host.cpp.
const Texts& kernel_files() {
  static const Texts files{
      "processor\t: 0\nmodel name\t: Made Up CPU\nphysical id\t: 0\ncpu MHz\t\t: 1999.9\nflags\t\t: fpu avx2 fma "
      "amx_bf16\n\nprocessor\t: 1\nphysical id\t: 1\n",
      "MemTotal:        8000000 kB\nMemAvailable:    6000000 kB\n",
      "0.50 0.25 0.10 1/100 1234\n",
      "some avg10=12.50 avg60=1.00 avg300=0.10 total=1\n",
      "PRETTY_NAME=\"Made Up Linux 7\"\n",
      "0-2,4\n",
      "powersave\n",
      "Unified\n",
      "3\n",
      "260M\n",
      "0-2,4\n",
      "150000 100000\n",
      "4000000000\n",
      "1000000000\n",
      "200000\n",
      "100000\n",
      "2000000000\n",
      "500000000\n",
      "0x10de\n"};
  return files;
}

Texts host_answers() {
  Texts seeds;
  for (const char* separator : {"\x1e", "\n\x1e", "x\x1e", "nan\x1e", "-1\x1e"}) {
    std::string all = std::string(1, '\0');
    for (const std::string& file : kernel_files()) all += file + separator;
    seeds.push_back(all);
  }
  NvidiaDriver driver{true, 2, 13000, true, false, "", {90, 80}};
  GpuSurvey survey{"", "libnvidia-ml.so.1", "580.65.06", 13000, {}, {1}};
  GpuFacts& gpu = survey.gpus.emplace_back();
  gpu.name = "A GPU";
  gpu.memory_bytes = std::int64_t{80} << 30;
  gpu.max_sm_mhz = 1980;
  gpu.pcie_generation = 5;
  gpu.pcie_width = 16;
  gpu.processes = std::vector<GpuProcess>{{1, std::int64_t{1} << 20}};
  gpu.now.reasons = 0x104;
  gpu.now.temperature_c = 40;
  gpu.now.power_w = 350.5;
  seeds.push_back("\x01" + dump(to_json(driver)));
  seeds.push_back("\x02" + dump(to_json(survey)));
  seeds.push_back("\x03" + dump(to_json(holding_report().run.devices.front())));
  for (const Texts& texts : {hostile_texts(), broken_texts()}) {
    for (const std::string& text : texts) seeds.push_back("\x04" + text);
  }
  return seeds;
}

std::set<std::string> host_words(const Texts& seeds) {
  std::set<std::string> words{"model name\t: ",
                              "cpu MHz\t: ",
                              "flags\t: ",
                              "physical id\t: ",
                              "MemTotal: ",
                              "avg10=",
                              " total=",
                              "max",
                              "nan",
                              "inf",
                              "1e300",
                              "0-4294967295",
                              "K",
                              "M",
                              "\x1e"};
  for (const std::string& seed : seeds) {
    if (seed.size() > 1 && seed[0] >= 1 && seed[0] <= 3) add_legend(parse_json(seed.substr(1), "seed"), words);
  }
  return words;
}

// Each text in a different output and field.
Texts outputs_of(const Texts& texts) {
  Texts seeds;
  for (std::size_t i = 0; i < texts.size(); ++i)
    seeds.push_back({static_cast<char>(i % 17), static_cast<char>(i * 7 % 101)});
  for (std::size_t i = 0; i < texts.size(); ++i) seeds[i] += texts[i];
  return seeds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Seeds seeds(argv[1]);
  seeds.write("report", reports(), words_of({dump(report_json(holding_report()))}));
  // Numbers at the limits of their formats; the report's seeds cover the rest of JSON.
  seeds.write("json",
              {"[-0,-0.0,1e22,1e23,9007199254740993,9007199254740993.0,1.7976931348623159e308,4.9e-324,2e-324]",
               "[18446744073709551616,-9223372036854775809,123456789012345678901234567890e-10,0.1e-399]",
               R"({"a":[1.5,2e3],"rounds":{"a":[{"b":"\u00e9\ud834\udd1e"}]}})", "[1e", "-", "[0.", "[01]", "[1e999]"},
              words_of({R"({"a":["\ud834\udd1e"],"rounds":0.1e-10})"}));
  const Texts journal = journals();
  seeds.write("journal", journal,
              words_of({dump(to_json(sample_record())), R"({"line":0,"start":{"words":[],
      "settings":{}, "schema":"gpubench-journal","schema_version":1},"case":{},"round":{},"resumed":true})",
                        R"({"start":{"schema":"gpubench-soak",
      "devices":[]},"opened":{},"cases":{"left_out":[]},"recheck":{"seconds":1},"interval":{},"divergence":{},"wrong":{"text":""},"vote":{},
      "lost":{},"end":{"voted":1,"not_compared":[]}})"}));
  const std::vector<Invocation> runs = side_of({1000, 1010, 1005});
  const Noise noise = noise_of(runs, "2026-11-21T02:34:19+00:00");
  const Texts kept{dump(to_json(noise)),
                   dump(to_json(make_baseline("main", "2026-11-21T02:34:19+00:00", runs, noise)))};
  seeds.write("noise", {kept[0], kept[1], "{\"schema\": \"gpubench-noise\"}", "[]"}, words_of(kept));
  const std::string choices =
      R"({"schema": "gpubench-tuning", "schema_version": 1, "setting": {"device": "A Device", "units": "0",
          "compute_capability": "", "library library": "1.0", "deterministic": "no", "gpubench": "0.1.0"},
          "choices": {"an op": "an implementation"}})";
  seeds.write("tuning_cache", {choices, "{}", "[", R"({"schema": "gpubench-tuning", "schema_version": 2})"},
              words_of({choices}));
  seeds.write(
      "shapes",
      {"--dt=f32,bf16 --wtag=ab,ba\n64x128:128x96n\"a\"\n--dir=BWD_W --mb=4\ng2mb8_ic64ih56oc64oh56kh3sh1ph1dh0\n",
       "onednn_verbose,v1,primitive,exec,cpu,matmul,i,undef,src:f32:a:blocked:ab::f0 wei:f32::blocked:ba::f0 "
       "dst:f32::blocked:ab::f0,attr-post-ops:sum,,64x128:128x96,0.1\n",
       "dnnl_verbose,exec,cpu,convolution,i,backward_data,src_f32::blocked:acdb:f0 wei_f32::blocked:any:f0 "
       "dst_f32::blocked:acdb:f0,,alg:auto,mb2_ic16oc16_ih7oh7kh5sh1dh0ph2_iw7ow7kw5sw1dw0pw2,0.2\n",
       "I! cuBLAS (v13.4) function cublasStatus_t cublasGemmEx(int) called:\ni!  transa: type=t; "
       "val=CUBLAS_OP_T(1)\ni!  m: "
       "type=int; val=96\ni!  n: type=int; val=64\ni!  k: type=int; val=8\ni!  Atype: type=t; val=CUDA_R_16BF(14)\n",
       "[cublasLt][17][Trace][cublasLtMatmul] Adesc=[type=R_32F rows=8 cols=6 ld=8] Bdesc=[type=R_32F rows=8 cols=4 "
       "ld=8] "
       "Ddesc=[type=R_32F rows=6 cols=4 ld=6 batchCount=2] computeDesc=[computeType=COMPUTE_32F transa=OP_T]\n",
       "./rocblas-bench -f gemm_ex --transposeA T -m 9 -n 6 -k 8 --a_type bf16_r --lda 8 --beta 0\n",
       "- { rocblas_function: \"rocblas_sgemm\", transA: 'T', M: 96, N: 64, K: 128, lda: 128, call_count: 7 }\n",
       "training_set = {\n  std::make_tuple(1760, 16, 1760, true, false),\n",
       "w,h,c,n,k,filter_w,filter_h,pad_w,pad_h,stride_w,stride_h,precision,calls\n70,16,1,4,32,20,5,0,0,2,2,f32,3\n",
       R"({"shapes":[{"suite":"gemm","workload":"matmul","params":{"m":1,"n":2,"k":3},"recipe":"bf16","calls":2.5}]})"},
      words_of({R"({"shapes":"suite","gemm":"workload","matmul":"params","recipe":"calls"})"}));
  seeds.write("argv",
              {"run\n--suite\ngemm,conv\n--tier=smoke\n-q",
               "list\n--format=json",
               "help\nrun",
               "--version",
               "validate\na.json\nb.json",
               "export\n--format\ncsv\na.json\n-o\nb.csv",
               "--axis\nk=1,2\n-v",
               "GPUBENCH_TIER=smoke\nGPUBENCH_DRY_RUN=on\nGPUBENCH_TEIR=x",
               "GPUBENCH_AXIS=k=1,2\nrun\n--batch\n1,2",
               "list\n--shapes\na.log",
               "--axis=k=256,512",
               "--batch=1,2,4",
               "--ranks=8",
               "--axis=m=9223372036854775807",
               "--axis==",
               "--axis=k=",
               "--batch=-1",
               "--batch=1,,2",
               "--pin=\n--noise=",
               "gate\na.json\nb.json\n--tau=5%"},
              flags_and_values());
  // An even first byte: bytes of a pipe; odd: the body of a message.
  seeds.write("messages",
              {"0" + encode_frame({FrameKind::phase, "3 check"}) + encode_frame({FrameKind::done, ""}),
               "0" + encode_frame({FrameKind::record, "17\nrecord"}).substr(0, 15),
               "1" + encode_group({{0, "a/b/x1"}, {7, "c"}}), "117 check", "1"},
              {encode_frame({FrameKind::phase, "3 check"}), encode_frame({FrameKind::done, ""}),
               encode_frame({FrameKind::record, "0\n"}), "4294967295", "\n"});
  Texts texts = hostile_texts();
  texts.insert(texts.end(), broken_texts().begin(), broken_texts().end());
  const std::set<std::string> hostile(texts.begin(), texts.end());
  seeds.write("text", texts, hostile);
  seeds.write("outputs", outputs_of(texts), hostile);
  const Texts host = host_answers();
  seeds.write("host", host, host_words(host));
  const Texts patterns{"m=8,.*f32",      "^memory/", "(.+)+Z",  "((((",           "m=(8",
                       "[[:digit:]]{4}", "x[a-",     "\\d+\\/", "(a{1000}){1000}"};
  seeds.write("filter", patterns,
              {"(?:", "(?i)", "(?P<a>", "[[:alpha:]]", "{1000}", "\\b", "\\pL", "\\Q", "\\C", ".*", "|"});
  return 0;
}
