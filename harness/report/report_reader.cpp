#include "harness/report/report_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>

#include "harness/core/record.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "harness/report/record_io.h"

namespace gpubench {
namespace {

constexpr int by_the_interval = 5;  // minor version from which "noisy" follows from the interval

void restate_noisy(Summary& summary) {
  std::erase(summary.flags, "noisy");
  if (timing_unreliable(summary) && half_width(summary)) summary.flags.insert(summary.flags.begin(), "noisy");
}

using record_members::Reader;

constexpr std::string_view build_types[] = {"release", "debug"};

int number_before(std::string_view text, char end, const Node& place) {
  int value = -1;
  const std::string_view digits = text.substr(0, text.find(end));
  const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || last != digits.data() + digits.size() || value < 0)
    place.refuse("is not a version such as 1.2");
  return value;
}

// The minor version. Throws for another major version, which nothing else can be checked by.
int known_version(const Node& run) {
  const Node schema = run.at("schema");
  if (schema.text() != report_schema) schema.refuse(fmt::format("is not \"{}\"", report_schema));
  const Node place = run.at("schema_version");
  const std::string version = place.text();
  if (version.find('.') == std::string::npos) place.refuse("is not a version such as 1.2");
  const int major = number_before(version, '.', place);
  const int minor = number_before(std::string_view(version).substr(version.find('.') + 1), '\0', place);
  const int own = report_schema_version.front() - '0';
  if (major != own) {
    place.refuse(fmt::format("is \"{}\": major version {} of the schema; this gpubench reads version {}, as in \"{}\"",
                             visible(version), major, own, report_schema_version));
  }
  return minor;
}

void read_load(const Node& context, std::vector<double>& load) {
  const Node list = context.at("load_avg");
  if (list.length() > 3) list.refuse(fmt::format("has {} elements, expected at most 3", list.length()));
  for (std::size_t i = 0; i < list.length(); ++i) {
    load.push_back(list.at(i).number());
    if (load.back() < 0.0) list.at(i).refuse(fmt::format("is {}, expected a number from 0", load.back()));
  }
}

void read_context(const Node& context, Report& report, Problems& problems) {
  report.host = Reader::read<HostContext>(context, &problems);
  problems.attempt([&] { read_load(context, report.host.load_avg); });
  problems.attempt([&] { (void)record_members::index_of_word(context.at("library_build_type"), build_types); });
  problems.attempt([&] { (void)context.at("json_schema_version").integer(1, 1); });
  problems.attempt([&] { (void)context.at("date").time(); });
  report.run = Reader::read<RunContext>(context.at("gpubench"), &problems);
}

// `times`: cases have been read before.
enum class Parts { all, times };

void read_shape(const Node& root, Parts parts, Report& report, Problems& problems) {
  const Node context = root.at("context");
  const Node run = context.at("gpubench");
  const int minor = known_version(run);
  read_context(context, report, problems);
  problems.attempt([&] {
    const Node benchmarks = root.at("benchmarks");
    if (parts == Parts::all) (void)benchmarks.length();
  });
  problems.attempt([&] {
    const Node cases = root.at("gpubench").at("cases");
    for (std::size_t i = 0; i < cases.length(); ++i)
      problems.attempt([&] { report.cases.push_back(record_from_json(cases.at(i), problems)); });
    restate(report, minor);
  });
  problems.attempt([&] { (void)root.at("gpubench").at("totals").members(); });
  if (root.has("digest")) problems.attempt([&] { (void)root.at("digest").text(); });
}

// Members unrelated to times: more than half of a report.
constexpr std::string_view untimed[] = {"benchmarks", "parity", "breakdown", "peak", "rewrites"};

constexpr int first_with_digest = 6;  // minor version; values of earlier reports may need restate()

// Throws ReadError for an invalid shape, and for a digest that does not match.
Report times_of(std::string_view text, const Sealed& sealed, const std::string& file, const EachCase& each) {
  const StreamedArray cases{"gpubench", "cases", [&](const Json& element, std::size_t index) {
                              const Node place(element, file, fmt::format("gpubench.cases[{}]", index));
                              each(record_from_json(place, untimed), index);
                            }};
  DigestMaker digest;
  const Json document = parse_json(text, file, {untimed, cases, &digest, sealed.content.size()});
  if (digest.digest() != sealed.digest) throw ReadError(broken_seal_text(file));
  const Node root(document, file);
  Report report;
  Problems problems;
  read_shape(root, Parts::times, report, problems);
  if (!problems.none()) throw ReadError(problems.kept().front());
  const Node run = root.at("context").at("gpubench");
  if (known_version(run) < first_with_digest) run.at("schema_version").refuse("has no digest");
  return report;
}

// Other problems are more specific than a changed digest.
Report report_from_text(std::string_view text, const std::string& file, Problems& problems) {
  Report report = report_from_json(parse_json(text, file), file, problems);
  if (problems.none() && seal_of(text) == Seal::broken) problems.add(broken_seal_text(file));
  return report;
}

}  // namespace

void restate(Report& report, int minor) {
  if (minor >= by_the_interval) return;
  std::unordered_set<std::string> unsure;
  std::unordered_set<std::string> unsure_alone;  // ids without ranks, of single-rank cases
  for (CaseRecord& record : report.cases) {
    restate_noisy(record.summary);
    if (!timing_unreliable(record.summary)) continue;
    unsure.insert(record.id);
    if (record.c.ranks == 1) unsure_alone.insert(record.c.id_without_ranks());
  }
  for (CaseRecord& record : report.cases) {
    const bool own = unsure.contains(record.id);
    if (record.derived.ranks && (own || unsure_alone.contains(record.c.id_without_ranks())))
      record.derived.ranks->efficiency.reset();
    if (record.derived.peak && (own || unsure.contains(record.derived.peak->best_case))) {
      record.derived.peak->of_best.reset();
      record.derived.peak->best_case.clear();
    }
  }
}

Report report_from_json(const Json& document, const std::string& file, Problems& problems) {
  Report report;
  const Node root(document, file);
  const std::size_t before = problems.count();
  try {
    problems.attempt([&] { read_shape(root, Parts::all, report, problems); });
    // Unreadable parts cannot be checked.
    if (problems.count() == before) check_meaning(report, root, problems);
  } catch (const Problems::Enough&) {
  }
  return report;
}

Report parse_report(std::string_view text, const std::string& path) {
  Problems problems;
  Report report = report_from_text(text, path, problems);
  if (problems.none()) return report;
  const std::string others = problems.count() == 1
                                 ? ""
                                 : fmt::format(" (and {}{} more; gpubench validate lists them)",
                                               problems.many() ? "at least " : "", problems.count() - 1);
  throw ReadError(problems.kept().front() + others);
}

Report parse_times(std::string_view text, const std::string& path, const EachCase& each) {
  if (const std::optional<Sealed> sealed = sealed_parts(text)) {
    std::exception_ptr refused;
    const auto unless_refused = [&](const CaseRecord& record, std::size_t index) {
      try {
        if (!refused) each(record, index);
      } catch (...) {
        refused = std::current_exception();
      }
    };
    std::optional<Report> report;
    try {
      report = times_of(text, *sealed, path, unless_refused);
    } catch (const ReadError&) {
    }
    if (report && refused) std::rethrow_exception(refused);
    if (report) return *std::move(report);
  }
  Report report = parse_report(text, path);
  for (std::size_t i = 0; i < report.cases.size(); ++i) each(report.cases[i], i);
  report.cases.clear();
  return report;
}

Report read_report(const std::string& path) { return parse_report(read_text(path), path); }

Problems problems_of_report(const std::string& path) {
  Problems problems;
  problems.attempt([&] { (void)report_from_text(read_text(path), path, problems); });
  return problems;
}

std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path) {
  std::map<std::string, std::map<std::string, std::string>> pins;
  for (const CaseRecord& record : read_report(path).cases) {
    if (record.verdict != Verdict::pass) continue;
    for (const auto& [label, implementation] : implementations_of(record)) pins[record.id][label] = implementation;
  }
  return pins;
}

std::map<std::string, std::int64_t> read_batches(const std::string& path) {
  constexpr std::int64_t most = 4096;  // the limit of batch_for()
  std::map<std::string, std::int64_t> batches;
  for (const CaseRecord& record : read_report(path).cases) {
    if (record.verdict != Verdict::pass) continue;
    if (record.batch < 1 || record.batch > most)
      throw ReadError(fmt::format("{}: {} has {} runs a sample, expected 1 to {}", visible(path), visible(record.id),
                                  record.batch, most));
    batches[record.id] = record.batch;
  }
  return batches;
}

}  // namespace gpubench
