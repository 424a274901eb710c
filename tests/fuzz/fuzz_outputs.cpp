// Fuzz target: any text in any field of a report stays text in every output (terminal, JUnit, Markdown, GitHub's log,
// page, charts, CSV, Prometheus, JSON): the numbers of elements, rows and cells are as with a plain word, and there is
// no control character. The first two bytes select output and field, the rest is the text.
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "harness/report/json.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/sinks.h"

using namespace gpubench;

namespace {

const Json& document() {
  static const Json whole = report_json(holding_report());
  return whole;
}

const std::vector<StringField>& open_fields() {
  static const std::vector<StringField> fields = [] {
    std::vector<StringField> open;
    for (const StringField& field : string_fields(document())) {
      if (report_with(document(), field, "qzword")) open.push_back(field);
    }
    return open;
  }();
  return fields;
}

// The text without possible markup; meaningful values such as "cpu" stay.
std::string tamed(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != ' ') c = 'x';
  }
  return text;
}

bool is_taken(const StringField& field, const std::string& text) {
  return field.is_name && document()[field.place.parent_pointer()].contains(text);
}

// Empty if the field rejects the text.
std::string written(const Sink& sink, const StringField& field, const std::string& text) {
  const std::optional<Report> report = report_with(document(), field, text);
  return report ? sink.written(*report) : "";
}

}  // namespace

// Too slow to run per input.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  (void)open_fields();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<StringField>& fields = open_fields();
  static std::map<std::pair<std::size_t, std::size_t>, std::string> harmless;
  if (size < 3) return 0;  // an empty text may omit its element
  const std::size_t s = data[0] % sinks().size(), f = data[1] % fields.size();
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Sink& sink = sinks()[s];
  if (is_taken(fields[f], text)) return 0;
  const std::string output = written(sink, fields[f], text);
  if (output.empty()) return 0;
  std::string& usual = harmless[{s, f}];
  if (usual.empty()) usual = written(sink, fields[f], "qzword");
  const std::string problem = sink.problem(output, usual);
  if (problem.empty() || is_taken(fields[f], tamed(text))) return 0;
  if (sink.problem(output, written(sink, fields[f], tamed(text))).empty()) return 0;
  std::fprintf(stderr, "%s, %s: %s\n", sink.name.c_str(), fields[f].text().c_str(), problem.c_str());
  std::abort();
}
