#include <fmt/format.h>

#include <cmath>

#include "harness/compare/gate_text.h"
#include "harness/report/junit.h"

namespace gpubench {
namespace {

JUnitElement element_of(const GateCase& one, bool allow_missing) {
  switch (one.verdict) {
    case GateVerdict::regressed: return JUnitElement::failure;
    case GateVerdict::parity_failed:
      return one.candidate_verdict == Verdict::error ? JUnitElement::error : JUnitElement::failure;
    case GateVerdict::missing: return allow_missing ? JUnitElement::skipped : JUnitElement::failure;
    case GateVerdict::not_comparable: return JUnitElement::error;
    case GateVerdict::added:
    case GateVerdict::inconclusive: return JUnitElement::skipped;
    case GateVerdict::improved:
    case GateVerdict::unchanged: return JUnitElement::none;
  }
  return JUnitElement::none;
}

std::string message_of(const GateCase& one) {
  if (!one.judgement) return one.reason;
  const Judgement& judgement = *one.judgement;
  return fmt::format("time {:+.1f}%, 95% interval {:+.1f}% to {:+.1f}%{}{}", 100.0 * std::expm1(judgement.effect.delta),
                     100.0 * std::expm1(judgement.low95), 100.0 * std::expm1(judgement.high95),
                     one.reason.empty() ? "" : "; ", one.reason);
}

JUnitCase test_of(const GateCase& one, bool allow_missing) {
  JUnitCase test{
      one.suite,      one.id, one.candidate_ns * 1e-9, element_of(one, allow_missing), std::string(name(one.verdict)),
      message_of(one)};
  if (test.element == JUnitElement::skipped) test.message = test.type + ": " + test.message;
  return test;
}

}  // namespace

std::string gate_junit(const GateResult& result, const std::string& fingerprint, bool allow_missing) {
  JUnitDocument document{"gpubench gate"};
  document.with_times = false;  // a suite's cases are times of two builds, not what judging them took
  document.properties = {
      {"fingerprint", fingerprint}, {"outcome", std::string(name(result.outcome))}, {"noise", result.noise}};
  for (const GateCase& one : result.cases) document.cases.push_back(test_of(one, allow_missing));
  // What belongs to no case, so that a reader who only counts sees it.
  if (result.cases.empty())
    document.cases.push_back(
        {"gate", "set-up", 0.0, JUnitElement::error, std::string(name(result.outcome)), result.why});
  return junit_document_text(document);
}

}  // namespace gpubench
