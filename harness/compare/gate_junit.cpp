#include <fmt/format.h>

#include <cmath>
#include <map>
#include <vector>

#include "harness/compare/gate_text.h"
#include "harness/report/escape.h"

namespace gpubench {
namespace {

enum class Element { none, failure, error, skipped };

Element element_of(const GateCase& one, bool allow_missing) {
  switch (one.verdict) {
    case GateVerdict::regressed: return Element::failure;
    case GateVerdict::parity_failed: return one.candidate_verdict == Verdict::error ? Element::error : Element::failure;
    case GateVerdict::missing: return allow_missing ? Element::skipped : Element::failure;
    case GateVerdict::not_comparable: return Element::error;
    case GateVerdict::added:
    case GateVerdict::inconclusive: return Element::skipped;
    case GateVerdict::improved:
    case GateVerdict::unchanged: return Element::none;
  }
  return Element::none;
}

struct Counts {
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;

  void add(Element element) {
    ++tests;
    failures += element == Element::failure ? 1 : 0;
    errors += element == Element::error ? 1 : 0;
    skipped += element == Element::skipped ? 1 : 0;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", tests, failures, errors, skipped);
  }
};

std::string message_of(const GateCase& one) {
  if (!one.judgement) return one.reason;
  const Judgement& judgement = *one.judgement;
  return fmt::format("time {:+.1f}%, 95% interval {:+.1f}% to {:+.1f}%{}{}", 100.0 * std::expm1(judgement.effect.delta),
                     100.0 * std::expm1(judgement.low95), 100.0 * std::expm1(judgement.high95),
                     one.reason.empty() ? "" : "; ", one.reason);
}

std::string case_text(const GateCase& one, Element element) {
  std::string text = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"", xml_text(one.suite),
                                 xml_text(one.id), one.candidate_ns * 1e-9);
  if (element == Element::none) return text + "/>\n";
  const std::string message = xml_text(message_of(one));
  if (element == Element::skipped)
    return text + fmt::format(">\n      <skipped message=\"{}: {}\"/>\n    </testcase>\n", name(one.verdict), message);
  return text + fmt::format(">\n      <{} type=\"{}\" message=\"{}\"/>\n    </testcase>\n",
                            element == Element::failure ? "failure" : "error", name(one.verdict), message);
}

struct SuiteText {
  std::string name;
  Counts counts;
  std::string cases;
};

}  // namespace

std::string gate_junit(const GateResult& result, const std::string& fingerprint, bool allow_missing) {
  std::vector<SuiteText> suites;
  std::map<std::string, std::size_t> places;
  Counts all;
  const auto add = [&](const std::string& suite, Element element, const std::string& text) {
    const auto [place, fresh] = places.try_emplace(suite, suites.size());
    if (fresh) suites.push_back({suite, {}, {}});
    suites[place->second].counts.add(element);
    suites[place->second].cases += text;
    all.add(element);
  };
  for (const GateCase& one : result.cases) {
    const Element element = element_of(one, allow_missing);
    add(one.suite, element, case_text(one, element));
  }
  // What belongs to no case, so that a reader who only counts sees it.
  if (result.cases.empty()) {
    add("gate", Element::error,
        fmt::format(
            "    <testcase classname=\"gate\" name=\"set-up\" time=\"0\">\n      <error type=\"{}\" message=\"{}\"/>\n"
            "    </testcase>\n",
            xml_text(name(result.outcome)), xml_text(result.why)));
  }
  std::string text =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gpubench gate\" {}>\n", all.text());
  for (const SuiteText& suite : suites) {
    text += fmt::format("  <testsuite name=\"{}\" {}>\n    <properties>\n", xml_text(suite.name), suite.counts.text());
    const std::pair<const char*, std::string> properties[] = {
        {"fingerprint", fingerprint}, {"outcome", std::string(name(result.outcome))}, {"noise", result.noise}};
    for (const auto& [key, value] : properties)
      text += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", key, xml_text(value));
    text += "    </properties>\n" + suite.cases + "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

}  // namespace gpubench
