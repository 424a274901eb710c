// failures_text(): the evidence of each failure, and the command that repeats it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/console.h"

namespace gpubench {
namespace {

// The op that decided the verdict: among those that did not pass, the one that the record names, else that with the
// largest error.
const OpParity* culprit(const Parity& parity) {
  const OpParity* chosen = nullptr;
  for (const OpParity& op : parity.ops) {
    if (op.verdict == Verdict::pass) continue;
    const bool named = op.label == parity.worst_op;
    const bool chosen_named = chosen != nullptr && chosen->label == parity.worst_op;
    const bool larger = chosen == nullptr || !(op.error_over_bound <= chosen->error_over_bound);
    if (chosen == nullptr || (named && !chosen_named) || (named == chosen_named && larger)) chosen = &op;
  }
  return chosen;
}

using Fact = std::pair<std::string, std::string>;

Fact worst_fact(const OpParity& op) {
  const Worst& w = *op.worst;
  return {"worst", fmt::format("{}  got {}  want {}  off by {:.3g}  bound {:.3g}  ({:.3g} of the allowance)",
                               visible(fmt::format("{}[{}]", w.tensor, fmt::join(w.index, ", "))), format_exact(w.got),
                               format_exact(w.want), std::fabs(w.got - w.want), w.bound, op.error_over_bound)};
}

std::string_view phase_text(std::string_view phase) {
  if (phase == "recheck") return "recheck of the timed launch";
  if (phase == "exact") return "launch on exact data";
  if (phase == "special") return "launch on data that reveal faults";
  return phase == "timed" ? "output of a timed round" : "check of the op alone";
}

void add_op_facts(std::vector<Fact>& facts, const OpParity& op) {
  facts.emplace_back("op", fmt::format("{} ({}), {}{}", visible(op.label), visible(op.kind), phase_text(op.phase),
                                       op.implementation.empty() ? "" : ", by " + visible(op.implementation)));
  if (op.worst) facts.push_back(worst_fact(op));
  facts.emplace_back(
      "wrong", fmt::format("{} of {} judged elements ({} in all){}{}", format_count(op.bad), format_count(op.judged),
                           format_count(op.elements), op.reason.empty() ? "" : ": ", visible(op.reason)));
  if (op.places) facts.emplace_back("where", visible(op.places->tensor + ": " + op.places->words));
  if (op.mutations_rejected < op.mutations)
    facts.emplace_back(
        "proof", fmt::format("the check rejected only {} of {} corrupted copies", op.mutations_rejected, op.mutations));
}

std::string head(const CaseRecord& record, int number, const ConsoleStyle& style) {
  const std::string word = verdict_word(record.verdict);
  const std::string id = visible(record.key());
  const std::string start = fmt::format("f{}  ", number);
  const bool fits = style.width == 0 || columns(start + word) + 2 + columns(id) <= style.width;
  return start + paint(word, Tone::bad, style) + (fits ? "  " : "\n    ") + id + "\n";
}

std::string block(const CaseRecord& record, int number, const ConsoleStyle& style) {
  constexpr int column = 12;
  std::string text = head(record, number, style);
  for (const auto& [title, fact] : failure_facts(record))
    text += fmt::format("    {:<7} {}\n", title, title == "rerun" ? fact : fitted(fact, style.width, column));
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> failure_facts(const CaseRecord& record) {
  std::vector<Fact> facts;
  const OpParity* op = culprit(record.parity);
  if (op != nullptr) add_op_facts(facts, *op);
  // The record's reason often repeats that of its op.
  const bool said = op != nullptr && !op->reason.empty() && record.reason.find(op->reason) != std::string::npos;
  if (!record.reason.empty() && !said) facts.emplace_back("reason", visible(record.reason));
  int others = -1;
  for (const OpParity& other : record.parity.ops) others += other.verdict != Verdict::pass ? 1 : 0;
  if (others > 0)
    facts.emplace_back("also", fmt::format("{} more op checks did not pass; all are in the report", others));
  facts.emplace_back("seed", fmt::format("{}", record.parity.seed));
  if (!record.rerun.empty()) facts.emplace_back("rerun", visible(record.rerun));
  return facts;
}

std::string failures_text(std::span<const CaseRecord> records, const ConsoleStyle& style) {
  std::string text;
  int number = 0;
  for (const CaseRecord& record : records) {
    if (went_wrong(record.verdict)) text += block(record, ++number, style) + "\n";
  }
  return text;
}

namespace {

double error_of(const CaseRecord& record) {
  const double error = record.parity.error_over_bound;
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

}  // namespace

std::vector<const CaseRecord*> worst_first(std::span<const CaseRecord> records) {
  std::vector<const CaseRecord*> order;
  for (const CaseRecord& record : records) order.push_back(&record);
  std::stable_sort(order.begin(), order.end(), [](const CaseRecord* a, const CaseRecord* b) {
    if (a->verdict != b->verdict) return worse(a->verdict, b->verdict) == a->verdict;
    return went_wrong(a->verdict) && error_of(*a) > error_of(*b);
  });
  return order;
}

}  // namespace gpubench
