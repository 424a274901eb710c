#include "harness/cli/finding_records.h"

#include "harness/report/record_io.h"

namespace gpubench {
namespace record_members {

template <>
inline constexpr bool is_part<SoakedValue> = true;
template <>
inline constexpr bool is_part<MemoryErrors> = true;
template <>
inline constexpr bool is_part<Repetition> = true;
template <>
inline constexpr bool is_part<ValueBits> = true;
template <>
inline constexpr bool is_part<CaseBits> = true;
template <>
inline constexpr bool is_part<FaultRow> = true;
template <>
inline constexpr bool is_part<EndToEndResult> = true;
template <>
inline constexpr bool is_part<StepParity> = true;
template <>
inline constexpr bool is_part<RecipeLearning> = true;
template <>
inline constexpr bool is_part<BrokenLearning> = true;

constexpr Rule may_be_missing{.optional = true};
constexpr Rule may_be_empty{.empty_texts = true};

template <class Archive>
void visit(Archive& a, SoakInterval& i) {
  a("at_s", i.at_s);
  a("seconds", i.seconds);
  a("device_s", i.device_s);
  a("clearing_s", i.clearing_s);
  a("comparing_s", i.comparing_s);
  a("launches", i.launches);
  a("ops", i.ops);
  a("flop", i.flop);
  a("telemetry", i.telemetry);
}

template <class Archive>
void visit(Archive& a, SoakedValue& v) {
  a("op", v.op);
  a("kind", v.kind);
  a("implementation", v.implementation);
  a("tensor", v.tensor);
  a("print", v.print);
}

template <class Archive>
void visit(Archive& a, JudgedLaunch& l) {
  a("epoch", l.epoch);
  a("case", l.case_id);
  a("values", l.values);
}

template <class Archive>
void visit(Archive& a, MemoryErrors& e) {
  a("corrected", e.corrected);
  a("uncorrected", e.uncorrected);
}

template <class Archive>
void visit(Archive& a, Divergence& d) {
  a("at_s", d.at_s);
  a("epoch", d.epoch);
  a("case", d.case_id);
  a("text", d.text);
  a("left", d.left);
  a("telemetry", d.telemetry);
  a("memory_errors_before", d.errors_before);
  a("memory_errors", d.errors_now);
}

template <class Archive>
void visit(Archive& a, Repetition& r) {
  a("way", r.way);
  a("outcome", r.outcome);
  a("text", r.text, may_be_missing);
}

template <class Archive>
void visit(Archive& a, ValueBits& v) {
  a("tensor", v.tensor);
  a("op", v.op);
  a("kind", v.kind);
  a("implementation", v.implementation);
  a("elements", v.elements);
  a("part_elements", v.part_elements, {.least = 1});
  a("parts", v.parts);
}

template <class Archive>
void visit(Archive& a, CaseBits& b) {
  a("id", b.id);
  a("seed", b.seed);
  a("values", b.values);
}

template <class Archive>
void visit(Archive& a, DeterminismRecord& r) {
  a("id", r.id);
  a("unsupported", r.unsupported, may_be_missing);
  a("repetitions", r.repetitions);
  a("bits", r.bits);
}

template <class Archive>
void visit(Archive& a, FaultRow& r) {
  a("fault", r.name);
  a("in", r.where);
  a("rule", r.rule);
  a("faults", r.faults);
  a("caught", r.caught);
  a("unseen", r.unseen);
  a("weakest_caught", r.weakest_name, may_be_missing);
  a("weakest_caught_over_bound", r.weakest);
  a("escaped", r.escaped, may_be_empty);
  a("hidden", r.hidden, may_be_empty);
}

template <class Archive>
void visit(Archive& a, SelftestResult& r) {
  a("ops", r.ops);
  a("kinds", r.kinds);
  a("clean_launches", r.clean_launches);
  a("clean_cases", r.clean_cases);
  a("clean_elements", r.clean_elements);
  a("alarms", r.alarms, may_be_empty);
  a("left_out", r.left_out, may_be_empty);
  a("unmeasured", r.unmeasured, may_be_empty);
  a("steps", r.steps);
  a("steps_done", r.steps_done);
  a("rows", r.rows);
}

template <class Archive>
void visit(Archive& a, EndToEndResult& r) {
  a("tensor", r.tensor);
  a("role", r.role);
  a("norm", r.norm);
  a("error", r.error);
  a("allowed", r.allowed);
}

// `passed` follows from other members; it is written for readers of the document and ignored on reading.
template <class Archive>
void visit(Archive& a, StepParity& s) {
  bool passed = s.passed();
  a("step", s.step);
  a("passed", passed);
  a("loss", s.loss, {.sign = Sign::any});
  a("exact_loss", s.exact_loss, {.sign = Sign::any});
  a("tensors", s.tensors);
  a("error_over_allowed", s.worst);
  a("worst", s.worst_tensor);
  a("rejected", s.rejected);
}

template <class Archive>
void visit(Archive& a, RecipeLearning& r) {
  std::string run_by = r.lacking.empty() ? "device" : "emulated";
  a("id", r.id);
  a("precision", r.recipe);
  a("run_by", run_by);
  a("lacking", r.lacking);
  a("verdict", r.verdict);
  a("reason", r.reason);
  a("steps", r.judged);
  a("losses", r.losses);
  a("band_low", r.low);
  a("band_high", r.high);
}

template <class Archive>
void visit(Archive& a, BrokenLearning& b) {
  std::string run_by = "emulated";
  bool told_apart = b.seen_in_step > 0;
  a("name", b.name);
  a("what", b.what);
  a("precision", b.recipe);
  a("run_by", run_by);
  a("told_apart", told_apart);
  a("first_step", b.seen_in_step);
  a("by", b.seen_in);
  a("steps", b.judged);
  a("losses", b.losses);
}

template <class Archive>
void visit(Archive& a, ModelLearning& m) {
  Verdict verdict = m.verdict();
  a("model", m.model);
  a("verdict", verdict);
  a("exact_losses", m.exact_losses);
  a("exact_first_turn", m.exact_first, {.sign = Sign::any});
  a("exact_last_turn", m.exact_last, {.sign = Sign::any});
  a("recipes", m.recipes);
  a("broken", m.broken);
}

}  // namespace record_members

using record_members::Reader;
using record_members::Writer;

Json to_json(const SoakInterval& interval) { return Writer::written(interval); }
Json to_json(const JudgedLaunch& launch) { return Writer::written(launch); }
Json to_json(const Divergence& divergence) { return Writer::written(divergence); }
Json to_json(const DeterminismRecord& record) { return Writer::written(record); }
Json to_json(const SelftestResult& result) { return Writer::written(result); }
Json to_json(const ModelLearning& model) { return Writer::written(model); }

SoakInterval interval_from_json(const Node& node) { return Reader::read<SoakInterval>(node); }
JudgedLaunch judged_from_json(const Node& node) { return Reader::read<JudgedLaunch>(node); }
Divergence divergence_from_json(const Node& node) { return Reader::read<Divergence>(node); }
DeterminismRecord determinism_from_json(const Node& node) { return Reader::read<DeterminismRecord>(node); }
SelftestResult selftest_from_json(const Node& node) { return Reader::read<SelftestResult>(node); }
ModelLearning learning_from_json(const Node& node) { return Reader::read<ModelLearning>(node); }

}  // namespace gpubench
