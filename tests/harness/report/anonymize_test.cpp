#include "harness/report/anonymize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "harness/core/file/atomic_file.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/sinks.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace anonymize_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr HashKey key{0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
constexpr HashKey other_key{1, 2};
const KeptFlags flags{{"--suite", "--device", "--filter", "--seed"}, {}, {"--pin"}};
constexpr const char* marker = "qzword";

// The example in the paper's appendix A: key 00 01 ... 0f, message 00 01 ... 0e.
TEST(Anonymize, HashesAreThoseOfThePaper) {
  std::string message;
  for (char byte = 0; byte < 15; ++byte) message += byte;
  EXPECT_EQ(keyed_hash(key, message), 0xa129ca6149be45e5ULL);
}

Report whole_report() {
  Report report = holding_report();
  RunContext& run = report.run;
  run.argv = {"run", "--suite", "gemm", "--pin=/data/pins.json", "--out", "qzresults"};
  run.build.emplace_back("flags", "-O2 -I/opt/include");
  run.build.emplace_back("revision", "4f2c1e");
  run.env.emplace_back("CUDA_VISIBLE_DEVICES", "GPU-8c3f2a10-1111-2222-3333-444455556666,1");
  run.env.emplace_back("GPUBENCH_OUT", "qzresults");
  run.env.emplace_back("GPUBENCH_SUITE", "gemm");
  run.devices[0].properties = {{"isa", "avx2"},
                               {"uuid", "GPU-8c3f2a10-1111-2222-3333-444455556666"},
                               {"pci_bus_id", "0000:18:00.0"},
                               {"driver", "580.65.06"},
                               {"rank_places", "qzone:0,qztwo:1"}};
  report.cases[0].rounds[0].note = "odd";
  return report;
}

enum class Fate {
  kept,  // selection, method and results
  text,  // a sentence: names and paths in it are replaced
  hidden
};

// The result for each text of a report. A new member fails until it is listed here and handled in anonymize.cpp.
const std::vector<std::pair<const char*, Fate>>& fates() {
  static const std::vector<std::pair<const char*, Fate>> all{
      {".* \\(name\\)", Fate::kept},  // names are the program's; those of properties and variables of an allow-list
      {"/context/(date|library_build_type)", Fate::kept},
      {"/context/host_name", Fate::hidden},
      {"/context/executable", Fate::hidden},
      {"/context/caches/N/type", Fate::kept},
      {"/context/gpubench/(schema|schema_version|tool_version|tier|preset|check|invocation|injected)", Fate::kept},
      {"/context/gpubench/(started_at|finished_at)", Fate::kept},
      {"/context/gpubench/suites/N", Fate::kept},
      {"/context/gpubench/build/.*", Fate::text},
      {"/context/gpubench/argv/2", Fate::text},
      {"/context/gpubench/argv/N", Fate::hidden},
      {"/context/gpubench/env/GPUBENCH_SUITE", Fate::text},
      {"/context/gpubench/env/.*", Fate::hidden},
      {"/context/gpubench/arithmetic/N", Fate::kept},
      {"/context/gpubench/shapes/file", Fate::hidden},
      {"/context/gpubench/shapes/format", Fate::kept},
      {"/context/gpubench/shapes/excepts/N/reason", Fate::text},
      {"/context/gpubench/implementations/N/(name|digest)", Fate::kept},
      {"/context/gpubench/implementations/N/version", Fate::text},
      {"/gpubench/calls_totals/N/(suite|recipe|missing)", Fate::kept},
      {"/context/gpubench/devices/N/kind", Fate::kept},
      {"/context/gpubench/devices/N/name", Fate::text},
      {"/context/gpubench/devices/N/properties/driver", Fate::text},
      {"/context/gpubench/devices/N/properties/(uuid|pci_bus_id|isa|rank_places)", Fate::hidden},  // isa: not known
      {"/context/gpubench/devices/N/libraries/.*", Fate::text},
      {"/gpubench/cases/N/(id|suite|workload|recipe|label|tier|cache|contender|def_hash|status)", Fate::kept},
      {"/gpubench/cases/N/modes/N", Fate::kept},
      {"/gpubench/cases/N/reason", Fate::text},
      {"/gpubench/cases/N/(implementation|choice)", Fate::kept},
      {"/gpubench/cases/N/rewrites/N", Fate::kept},
      {"/gpubench/cases/N/memory/N/kind", Fate::kept},
      {"/gpubench/cases/N/rerun", Fate::hidden},
      {"/gpubench/cases/N/parity/(worst_op|coverage)", Fate::kept},
      {"/gpubench/cases/N/parity/ops/N/(label|kind|phase|implementation|choice|status|rejected/N)", Fate::kept},
      {"/gpubench/cases/N/parity/ops/N/reason", Fate::text},
      {"/gpubench/cases/N/parity/ops/N/worst/(tensor|nonfinite/.*)", Fate::kept},
      {"/gpubench/cases/N/parity/ops/N/places/(tensor|words)", Fate::kept},
      {"/gpubench/cases/N/parity/(passed/N/(phase|kind)|implementations/.*)", Fate::kept},
      {"/gpubench/cases/N/parity/arithmetic/N/reason", Fate::text},
      {"/gpubench/cases/N/parity/arithmetic/N/[a-z_]+", Fate::kept},
      {"/gpubench/cases/N/parity/end_to_end/N/(tensor|role)", Fate::kept},
      {"/gpubench/cases/N/unfinished/(why|checked|implementation)", Fate::kept},
      {"/gpubench/cases/N/(unfinished/)?rounds/N/note", Fate::text},
      {"/gpubench/cases/N/(unfinished/)?rounds/N/telemetry/reasons/N", Fate::kept},
      {"/gpubench/cases/N/(unfinished/)?rounds/N/telemetry/errors/N", Fate::kept},  // a number and a fixed name
      {"/gpubench/cases/N/summary/flags/N", Fate::kept},
      {"/gpubench/cases/N/derived/(item|headline_unit)", Fate::kept},
      {"/gpubench/cases/N/derived/breakdown/N/(label|kind|implementation)", Fate::kept},
      {"/gpubench/cases/N/derived/peak/(limit|peak_source|best_case|finding)", Fate::kept},
  };
  return all;
}

std::optional<Fate> fate_of(const StringField& field) {
  const std::string place = field.text();
  const std::string any = std::regex_replace(place, std::regex("/[0-9]+"), "/N");
  for (const auto& [pattern, fate] : fates()) {
    if (std::regex_match(place, std::regex(pattern)) || std::regex_match(any, std::regex(pattern))) return fate;
  }
  return std::nullopt;
}

std::string in_all_sinks(const Report& report) {
  std::string all;
  for (const Sink& sink : sinks()) all += sink.written(report);
  return all;
}

TEST(Anonymize, EveryTextOfAReportIsDecidedOnAndBecomesWhatWasDecided) {
  const Json whole = report_json(whole_report());
  std::map<Fate, int> tried;
  for (const StringField& field : string_fields(whole)) {
    SCOPED_TRACE(field.text());
    const std::optional<Fate> fate = fate_of(field);
    ASSERT_TRUE(fate.has_value()) << "decide in anonymize.cpp what becomes of it, and say so here";
    const std::string text = *fate == Fate::text ? "qzword of qzuser on A-Host in /home/qzuser/x" : marker;
    const std::optional<Report> report = report_with(whole, field, text);
    if (!report) continue;  // only accepts some words
    ++tried[*fate];
    const Report anonymous = anonymized(*report, key, flags, {"qzuser"});
    const std::string document = dump(report_json(anonymous));
    if (*fate == Fate::kept) {
      const Json after = report_json(anonymous);
      const bool there =
          field.is_name ? after.at(field.place.parent_pointer()).contains(text) : after.at(field.place) == Json(text);
      EXPECT_TRUE(there);
    } else if (*fate == Fate::text) {
      EXPECT_THAT(document, ::testing::AllOf(HasSubstr(marker), Not(HasSubstr("qzuser")), Not(HasSubstr("A-Host"))));
    } else {
      EXPECT_EQ(in_all_sinks(anonymous).find(marker), std::string::npos);
    }
  }
  EXPECT_GE(tried[Fate::kept], 60);
  EXPECT_GE(tried[Fate::text], 12);
  EXPECT_GE(tried[Fate::hidden], 10);
}

TEST(Anonymize, NothingThatIdentifiesIsLeftInAnySink) {
  Report report = whole_report();
  report.host.host_name = "qznode7.cluster.example";
  report.host.executable = "/home/qzann/bin/gpubench";
  report.cases[1].reason = report.cases[1].parity.ops[1].reason =
      "qznode7: qzann cannot open '/data/qzsecret': GPU-qz123456-1, 10.0.3.17";
  report.cases[1].rerun = "gpubench run --device cuda --pin /home/qzann/p.json --filter '^a$' --seed 42";
  report.run.build.emplace_back("more", "-I/home/qzann/include -ffile-prefix-map=/data/qzsecret=.");
  const Report anonymous = anonymized(report, key, flags);
  const std::string all = in_all_sinks(anonymous);
  for (const char* secret : {"qz", "8c3f2a10", "0000:18:00.0", "10.0.3.17", "/data/", "qzresults"})
    EXPECT_EQ(all.find(secret), std::string::npos)
        << secret << " in ..." << all.substr(std::max<std::size_t>(all.find(secret), 80) - 80, 160);
  EXPECT_THAT(anonymous.run.argv,
              ::testing::ElementsAre("run", "--suite", "gemm", ::testing::MatchesRegex("--pin=path-[0-9a-f]+")));
  EXPECT_THAT(anonymous.cases[1].rerun, ::testing::MatchesRegex("gpubench run --device cuda --pin path-[0-9a-f]+ "
                                                                "--filter '\\^a\\$' --seed 42"));
}

TEST(Anonymize, AnAnonymousReportHoldsWithItsOwnDigest) {
  const std::string text = sealed_text(report_json(anonymized(whole_report(), key, flags)));
  EXPECT_EQ(seal_of(text), Seal::holds);
  EXPECT_EQ(parse_report(text, "anonymous").cases.size(), 3U);
}

TEST(Anonymize, OneKeyGivesOneMachineOneNameAndAnotherKeyAnother) {
  Report elsewhere = whole_report();
  elsewhere.host.host_name = "b-host";
  const auto host = [](const Report& report, const HashKey& with) {
    return anonymized(report, with, flags).host.host_name;
  };
  EXPECT_EQ(host(whole_report(), key), host(whole_report(), key));
  EXPECT_NE(host(whole_report(), key), host(elsewhere, key));
  EXPECT_NE(host(whole_report(), key), host(whole_report(), other_key));
  // The device in a variable has the name in its properties.
  const RunContext run = anonymized(whole_report(), key, flags).run;
  EXPECT_EQ(run.env[1].second, run.devices[0].properties[1].second + ",1");
}

// A failure on another host names it.
TEST(Anonymize, HostsOfOtherRanksAreHiddenWhereverTheyAreNamed) {
  Report report = whole_report();
  report.cases[0].reason = "rank 1: process 1 (pid 4711 on qztwo): out of memory";
  const Report hidden = anonymized(report, key, flags);
  const std::vector<RankPlace> places = rank_places(hidden.run.devices[0]);
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[1].gpu, "1");
  EXPECT_NE(places[0].host, places[1].host);
  EXPECT_EQ(hidden.cases[0].reason, "rank 1: process 1 (pid 4711 on " + places[1].host + "): out of memory");
}

TEST(Anonymize, SentencesLoseNamesAndPathsAndNothingElse) {
  Report report = holding_report();
  report.host.host_name = "node7.example";
  const Anonymizer anonymizer(key, flags, report, {"ann", "root"});
  for (const char* kept : {"3 of 4096 elements outside their bound, first at c[0, 17]", "12.5 GB/s, 1/2 of tokens/s",
                           "gpubench run --filter '^gemm/linear/m=8,n=4/.*/x1$'", "node70, anna: as root", "a / b",
                           "libcudart 13.0.96, driver 580.65.06", "GPU-bound", "clock 1980 MHz -> 1755 MHz"})
    EXPECT_EQ(anonymizer.text(kept), kept);
  for (const auto& [text, pattern] : std::vector<std::pair<const char*, const char*>>{
           {"NODE7 and node7.example.", "host-[0-9a-f]+ and host-[0-9a-f]+\\."},
           {"\"/tmp/x y\": no", "\"path-[0-9a-f]+ y\": no"},
           {"at ../ann/x, ~/y.", "at path-[0-9a-f]+, path-[0-9a-f]+\\."},
           {"-O2 -I/usr/x --prefix=/y", "-O2 -Ipath-[0-9a-f]+ --prefix=path-[0-9a-f]+"},
           {"bus 0000:3B:00.0 of ann", "bus bus-[0-9a-f]+ of user-[0-9a-f]+"},
           {"MIG-1a2b3c4d-0001 gone", "gpu-[0-9a-f]+ gone"}})
    EXPECT_THAT(anonymizer.text(text), ::testing::MatchesRegex(pattern)) << text;
}

TEST(Anonymize, PartsOfPathsOfTheCommandLineAreHashedWhereverTheyOccur) {
  Report report = holding_report();
  report.run.argv = {"run", "--pin=acme/gemm/pins.json", "--out", "bound/zeus"};
  KeptFlags kept = flags;
  kept.outputs = {"--out"};
  kept.words = {"gemm", "bound"};
  const Anonymizer anonymizer(key, kept, report, {"ann"});
  EXPECT_EQ(anonymizer.text("acme/gemm/pins.json:3"), anonymizer.path("acme/gemm/pins.json") + ":3");
  EXPECT_EQ(anonymizer.text("no module 'Acme'"), "no module '" + anonymizer.path("acme") + "'");
  EXPECT_EQ(anonymizer.text("pins.json, zeus/x"), anonymizer.path("pins.json") + ", " + anonymizer.path("zeus/x"));
  EXPECT_EQ(anonymizer.text("sub/other.cpp"), anonymizer.path("sub/other.cpp"));
  for (const char* left : {"gemm/matmul/m=8/f32/x1@my.impl: above its bound", "impl:loops/tiles.avx, 12 GB/s"})
    EXPECT_EQ(anonymizer.text(left), left);
}

// Gates compare facts with those of other reports, and resumed runs with their journal's.
TEST(Anonymize, FactsDoNotDependOnTheNamesOfOutputFiles) {
  Report report = holding_report();
  report.run.devices[0].name = "AMD EPYC";
  report.run.build = {{"type", "Release"}};
  report.run.argv = {"run", "--json", "epyc.json", "-orelease/acme.csv"};
  KeptFlags kept = flags;
  kept.outputs = {"--json", "-o"};
  const Anonymizer anonymizer(key, kept, report);
  anonymizer.context(report);
  EXPECT_EQ(report.run.devices[0].name, "AMD EPYC");
  EXPECT_EQ(report.run.build[0].second, "Release");
  EXPECT_EQ(anonymizer.text("acme failed"), anonymizer.path("acme") + " failed");
}

TEST(Anonymize, MailAddressesAreHashedWithTheirDomains) {
  const Anonymizer anonymizer(key, flags, holding_report(), {"ann"});
  EXPECT_THAT(anonymizer.text("ask ann@acme-corp.com or <bob.l@x.acme.com>."),
              ::testing::MatchesRegex("ask mail-[0-9a-f]+ or <mail-[0-9a-f]+>\\."));
}

class AnonymizeKey : public ScratchFolder {
 protected:
  std::string file_ = folder_ / "deep/key";
};

TEST_F(AnonymizeKey, IsDrawnOnceAndKeptForItsOwnerAlone) {
  const HashKey drawn = anonymize_key(file_);
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const HashKey again = anonymize_key(file_), another = anonymize_key(folder_ / "other");
  EXPECT_TRUE(again.low == drawn.low && again.high == drawn.high);
  EXPECT_FALSE(another.low == drawn.low || another.high == drawn.high);
}

TEST_F(AnonymizeKey, IsRefusedWhereOthersCanReadItOrItIsNone) {
  (void)anonymize_key(file_);
  std::filesystem::permissions(file_, std::filesystem::perms(0640));
  EXPECT_THROW((void)anonymize_key(file_), ReadError);
  for (const char* bytes : {"", "0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789ABCDEF\n",
                            "0123456789abcdef0123456789abcdef0\n"}) {
    std::filesystem::remove(file_);
    std::ofstream(file_) << bytes;
    std::filesystem::permissions(file_, std::filesystem::perms(0600));
    EXPECT_THROW((void)anonymize_key(file_), ReadError) << bytes;
  }
  std::filesystem::remove(file_);
  ASSERT_EQ(::symlink("/dev/zero", file_.c_str()), 0);
  EXPECT_THROW((void)anonymize_key(file_), ReadError);
  EXPECT_THROW((void)anonymize_key("/proc/none/key"), WriteError);
}

}  // namespace anonymize_test
}  // namespace gpubench
