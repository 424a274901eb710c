#include "tests/harness/report/malformed_reports.h"

#include <fmt/format.h>

namespace gpubench {
namespace {

// The given text in place of the failed case's label.
std::string with_label(const std::string& text) {
  Json report = report_json(holding_report());
  report["gpubench"]["cases"][1]["label"] = "@@";
  std::string bytes = report.dump();
  return bytes.replace(bytes.find("\"@@\""), 4, text);
}

std::string nested(int levels, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += "1";
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

Json& run(Json& report) { return report["context"]["gpubench"]; }

}  // namespace

std::vector<MalformedFile> malformed_bytes() {
  const std::string label = "gpubench.cases[1].label";
  std::vector<MalformedFile> files{
      {"empty", "", "(root)", "not JSON"},
      {"blanks", " \n\t", "(root)", "not JSON"},
      {"one brace", "{", "(root)", "not JSON"},
      {"a NUL", std::string(1, '\0'), "(root)", "not JSON"},
      {"an executable", std::string("\x7f") + "ELF\x02\x01\x01", "(root)", "not JSON"},
      {"gzip", "\x1f\x8b\x08", "(root)", "not JSON"},
      {"a page", "<!doctype html><p>404", "(root)", "not JSON"},
      {"UTF-16", std::string("\xff\xfe{\0}\0", 6), "(root)", "not JSON"},
      {"a byte order mark alone", "\xef\xbb\xbf", "(root)", "not JSON"},
      {"half a byte order mark", "\xef\xbb{}", "(root)", "not JSON"},
      {"an array", "[]", "(root)", "is array, expected an object"},
      {"a number", "7", "(root)", "is number, expected an object"},
      {"a string", "\"report\"", "(root)", "is string, expected an object"},
      {"null", "null", "(root)", "is null, expected an object"},
      {"an empty object", "{}", "(root)", "lacks \"context\""},
      {"Google Benchmark's own", R"({"context": {"json_schema_version": 1}, "benchmarks": []})", "context",
       "lacks \"gpubench\""},
      {"arrays too deep", nested(65, "[", "]"), "", "nested deeper than 64 levels"},
      {"arrays far too deep", nested(100000, "[", "]"), "", "nested deeper than 64 levels"},
      {"objects far too deep", nested(100000, "{\"a\":", "}"), "a.a.a", "nested deeper than 64 levels"},
      {"arrays that never end", std::string(1000000, '['), "", "nested deeper than 64 levels"},
      {"deep inside a case", with_label(nested(61, "[", "]")), label, "nested deeper than 64 levels"},
      {"a wide object", with_label([] {
         std::string text = "{";
         for (int i = 0; i < 5000; ++i) text += fmt::format("\"k{}\":0,", i);
         return text + "\"z\":0}";
       }()),
       label, "more than 4096 members"},
      {"a key twice at the top", "{\"context\": {}, \"context\": {}}", "context", "appears twice"},
      {"a key twice in a case", with_label("\"x\", \"label\": \"y\""), label, "appears twice"},
      {"an escaped key twice", with_label("\"x\", \"lab\\u0065l\": \"y\""), label, "appears twice"},
      {"two documents", changed_report([](Json&) {}) + "{}", "", "not JSON"},
      {"a comment", "// a report\n" + changed_report([](Json&) {}), "(root)", "not JSON"},
      {"single quotes", "{'context': {}}", "(root)", "not JSON"},
      {"a comma too many", with_label("[1,]"), label, "not JSON"},
      {"no comma", with_label("[1 2]"), label, "not JSON"},
      {"no colon", with_label("{\"a\" 1}"), label, "not JSON"},
      {"NaN", with_label("NaN"), label, "not JSON"},
      {"nan", with_label("nan"), label, "not JSON"},
      {"Infinity", with_label("-Infinity"), label, "not JSON"},
      {"beyond fp64", with_label("1e999"), label, "not JSON"},
      {"below -fp64", with_label("-1e999"), label, "not JSON"},
      {"a thousand digits", with_label(std::string(1000, '9')), label, "not JSON"},
      {"hexadecimal", with_label("0x10"), label, "not JSON"},
      {"a leading zero", with_label("007"), label, "not JSON"},
      {"a plus", with_label("+1"), label, "not JSON"},
      {"a bare point", with_label(".5"), label, "not JSON"},
      {"a point at the end", with_label("5."), label, "not JSON"},
      {"an empty exponent", with_label("1e"), label, "not JSON"},
      {"True", with_label("True"), label, "not JSON"},
      {"undefined", with_label("undefined"), label, "not JSON"},
      {"a byte that is not UTF-8", with_label("\"\xff\""), label, "not JSON"},
      {"an overlong slash", with_label("\"\xc0\xaf\""), label, "not JSON"},
      {"a surrogate in UTF-8", with_label("\"\xed\xa0\x80\""), label, "not JSON"},
      {"beyond Unicode", with_label("\"\xf4\x90\x80\x80\""), label, "not JSON"},
      {"half a character", with_label("\"\xe2\x82\""), label, "not JSON"},
      {"half a surrogate pair", with_label("\"\\ud800\""), label, "not JSON"},
      {"a bad escape", with_label("\"\\x41\""), label, "not JSON"},
      {"a short escape", with_label("\"\\u12\""), label, "not JSON"},
      {"a raw newline in a string", with_label("\"a\nb\""), label, "not JSON"},
      {"a raw escape character", with_label("\"\x1b[2J\""), label, "not JSON"},
      {"a raw NUL in a string", with_label(std::string("\"a\0b\"", 5)), label, "not JSON"},
      {"a string that never ends", with_label("\"abc"), label, ""},
      {"a key that is no string", with_label("{1: 2}"), label, "not JSON"},
  };
  const std::string whole = changed_report([](Json&) {});
  constexpr int cuts = 40;
  for (int i = 1; i < cuts; ++i) {
    const std::size_t bytes = whole.size() * static_cast<std::size_t>(i) / cuts;
    files.push_back(
        {fmt::format("cut after {} of {} bytes", bytes, whole.size()), whole.substr(0, bytes), "", "not JSON"});
  }
  for (const char* version : {"2.0", "0.9", "10.0", "999999.0"})
    files.push_back({std::string("version ") + version,
                     changed_report([&](Json& j) { run(j)["schema_version"] = version; }),
                     "context.gpubench.schema_version", "this gpubench reads version 1"});
  for (const char* version : {"1", "1.", ".2", "1.x", "-1.0", "1.2.3", " 1.2", "1.2 ", "1.-2", "", "one"})
    files.push_back({fmt::format("version '{}'", version),
                     changed_report([&](Json& j) { run(j)["schema_version"] = version; }),
                     "context.gpubench.schema_version", "is not a version such as 1.2"});
  files.push_back({"another schema", changed_report([](Json& j) { run(j)["schema"] = "gpubench-tuning"; }),
                   "context.gpubench.schema", "is not \"gpubench-report\""});
  return files;
}

}  // namespace gpubench
