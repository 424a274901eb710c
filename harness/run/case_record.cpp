#include "harness/run/case_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <vector>

#include "harness/core/hash.h"
#include "harness/hardware/peaks.h"
#include "harness/parity/fill.h"

namespace gpubench {
namespace {

// Hashes sample values of a fill, so that a change of fill() changes every definition.
std::uint64_t digest_of(const Fill& fill_kind, DType type) {
  const TensorSpec spec = tensor("definition", type, {4, 16}, Role::input, fill_kind);
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  fill(spec, "definition", 0, bytes);
  return hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::uint64_t digest_of_fills() {
  constexpr std::int64_t low = -3;
  constexpr std::int64_t high = 100;
  std::uint64_t digest = 0;
  const auto add = [&](const Fill& one, DType type) { digest = hash_at(digest, digest_of(one, type)); };
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2})
    add(Fill::normal(1.0), type);
  for (const Fill& one :
       {Fill::positive(1.0), Fill::constant(0.5), Fill::norm_rows(1.0), Fill::pointwise(), Fill::tiny_mix(1.0)})
    add(one, DType::f32);
  for (const Fill& one : {Fill::integers(low, high), Fill::sequence(low, high)}) add(one, DType::i32);
  return digest;
}

std::string_view phase_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::fail: return "failed";
    case Verdict::not_proven: return "was not proven";
    case Verdict::downgraded: return "was downgraded";
    default: return name(verdict);
  }
}

std::string coverage_of(const Parity& parity, int pauses) {
  std::int64_t judged = 0;
  std::int64_t elements = 0, projected = 0;
  std::int64_t exact = 0, exact_judged = 0;  // on exact data
  double projected_fault = 0.0;
  std::set<std::string_view> labels;
  for (const OpParity& op : parity.ops) {
    if (op.phase == "special") continue;
    if (op.phase == "exact") {
      exact += op.elements;
      exact_judged += std::min(op.elements, op.judged + op.projected.value_or(0));
      continue;
    }
    judged += op.judged;
    elements += op.elements;
    projected += op.projected.value_or(0);
    projected_fault = std::max(projected_fault, op.projected_fault.value_or(0.0));
    labels.insert(op.label);
  }
  if (elements == 0) return "nothing judged";
  const std::string ops = labels.size() == 1 ? "the op" : fmt::format("all {} ops", labels.size());
  std::string text = judged == elements
                         ? fmt::format("{}, 100% of elements", ops)
                         : fmt::format("{}, sampled {:.2g}% of elements", ops,
                                       100.0 * static_cast<double>(judged) / static_cast<double>(elements));
  if (projected > 0)
    text += fmt::format(", {:.3g}% by sums, which show a single error of {:.1g} rms",
                        100.0 * static_cast<double>(projected) / static_cast<double>(elements), projected_fault);
  if (pauses > 0) text += fmt::format("; recheck replayed in {} segments", pauses + 1);
  if (exact > 0)
    text += fmt::format("; {:.3g}% of products bit for bit on exact data",
                        100.0 * static_cast<double>(exact_judged) / static_cast<double>(exact));
  return text;
}

std::string checked_by_now(const Parity& parity) {
  if (parity.ops.empty()) return "nothing";
  std::int64_t judged = 0, elements = 0;
  for (const OpParity& op : parity.ops) {
    judged += op.judged;
    elements += op.elements;
  }
  return fmt::format("{} of {} elements before the rounds, none wrong; results of the rounds not checked", judged,
                     elements);
}

std::string_view name_of(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : signal == SIGHUP ? "SIGHUP" : "a signal";
}

bool has_convolution(const CaseRecord& record) {
  return std::ranges::any_of(record.parity.ops, [](const OpParity& op) { return op.kind.starts_with("conv"); });
}

}  // namespace

std::string definition_hash(const PlannedCase& planned) {
  static const std::uint64_t fills = digest_of_fills();
  return fmt::format("{:016x}", hash_at(planned.definition, fills));
}

CaseRecord record_of(const PlannedCase& planned) {
  CaseRecord record;
  record.c = planned.c;
  record.id = planned.id();
  record.def_hash = definition_hash(planned);
  return record;
}

CaseRecord open_record(const PlannedCase& planned, const RunOptions& options) {
  CaseRecord record = record_of(planned);
  record.verdict = Verdict::pass;
  record.parity.seed = options.seed;
  record.rerun = rerun_line(options, record.c);
  return record;
}

void blame(CaseRecord& record, Verdict verdict, std::string reason) {
  if (verdict == record.verdict || worse(record.verdict, verdict) == record.verdict) return;
  record.verdict = verdict;
  record.reason = std::move(reason);
}

void add_peak_share(CaseRecord& record, std::optional<PeakShare> share) {
  record.derived.peak = std::move(share);
  if (!record.derived.peak || record.derived.peak->finding.empty()) return;
  record.summary.flags.emplace_back("above peak");
  if (!has_convolution(record)) blame(record, Verdict::error, record.derived.peak->finding);
}

void add_peak_shares(const DeviceInfo& device, std::span<CaseRecord> records) {
  std::vector<std::optional<PeakShare>> shares = peak_shares(device, records);
  for (std::size_t i = 0; i < records.size(); ++i) add_peak_share(records[i], std::move(shares[i]));
}

CaseRecord unfinished_record(const PlannedCase& planned, int signal, const CaseRecord* left) {
  CaseRecord record = record_of(planned);
  if (signal == 0) {
    record.verdict = Verdict::error;
    record.reason = "the run ended without a record of this case";
    return record;
  }
  record.verdict = Verdict::skipped;
  record.reason = "the run was interrupted before this case finished";
  if (left == nullptr) return record;
  record.unfinished = {std::string(name_of(signal)), checked_by_now(left->parity), left->implementation, left->batch,
                       left->rounds};
  record.reason += fmt::format("; its {} {} {} kept as unfinished", left->rounds.size(),
                               left->rounds.size() == 1 ? "round" : "rounds", left->rounds.size() == 1 ? "is" : "are");
  return record;
}

void add_op(CaseRecord& record, OpParity parity) {
  if (parity.verdict != Verdict::pass) {
    blame(record, parity.verdict,
          fmt::format("op '{}' ({}) {} in {}: {}", parity.label, parity.kind, phase_text(parity.verdict), parity.phase,
                      parity.reason));
  }
  record.parity.ops.push_back(std::move(parity));
}

void add_end_to_end(CaseRecord& record, std::span<const EndToEndResult> results) {
  auto& tensors = record.parity.end_to_end.emplace();
  const EndToEndResult* worst = nullptr;
  std::size_t outside = 0;
  for (const EndToEndResult& result : results) {
    tensors.push_back({result.tensor, std::string(name(result.role)), result.norm, result.error, result.allowed});
    if (result.passed()) continue;
    ++outside;
    if (worst == nullptr || !(result.error / result.allowed <= worst->error / worst->allowed)) worst = &result;
  }
  if (worst == nullptr) return;
  blame(record, Verdict::fail,
        fmt::format("end to end: '{}' differs by {:.3g} from the whole program in fp64 (2-norm; its own is {:.3g}), "
                    "expected at most {:.3g}; {} of {} tensors are outside, though each op is right on its own inputs",
                    worst->tensor, worst->error, worst->norm, worst->allowed, outside, results.size()));
}

void close_parity(CaseRecord& record, CheckMode check, int pauses, const std::string& rounds) {
  Parity& parity = record.parity;
  for (const OpParity& op : parity.ops) {
    if (!parity.worst_op.empty() && op.error_over_bound <= parity.error_over_bound) continue;
    parity.error_over_bound = op.error_over_bound;
    parity.worst_op = op.label;
  }
  if (check == CheckMode::off) {
    parity.coverage = "not checked";
    blame(record, Verdict::unverified, "the check is off");
    return;
  }
  parity.coverage = coverage_of(parity, pauses);
  if (!rounds.empty()) parity.coverage += "; " + rounds;
  if (parity.end_to_end) parity.coverage += fmt::format("; {} tensors end to end", parity.end_to_end->size());
  if (parity.ops.empty()) blame(record, Verdict::not_proven, "no op was judged");
}

std::string rerun_line(const RunOptions& options, const Case& c) {
  std::string pattern;
  for (const char letter : c.id()) {
    if (letter == '.' || letter == '+') pattern += '\\';  // the only special characters of ids
    pattern += letter;
  }
  std::string ranks = c.ranks == 1 ? "" : fmt::format(" --ranks {}", c.ranks);
  if (const std::vector<std::string> layout = modes_of(c.parallel()); !layout.empty())
    ranks += fmt::format(" --parallel {}", fmt::join(layout, ","));
  return fmt::format("{}{} --filter '^{}$' --tier {} --seed {}", options.rerun_prefix, ranks, pattern,
                     name(options.tier), options.seed);
}

}  // namespace gpubench
