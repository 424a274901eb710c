#include "harness/core/record.h"

#include <algorithm>
#include <array>

namespace gpubench {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "pass";
    case Verdict::fail: return "fail";
    case Verdict::downgraded: return "downgraded";
    case Verdict::not_proven: return "not_proven";
    case Verdict::unverified: return "unverified";
    case Verdict::unsupported: return "unsupported";
    case Verdict::skipped: return "skipped";
    case Verdict::error: return "error";
  }
  return "?";
}

Verdict worse(Verdict a, Verdict b) {
  static constexpr std::array order{Verdict::error,      Verdict::fail,        Verdict::downgraded, Verdict::not_proven,
                                    Verdict::unverified, Verdict::unsupported, Verdict::skipped,    Verdict::pass};
  for (const Verdict candidate : order) {
    if (a == candidate || b == candidate) return candidate;
  }
  return Verdict::error;
}

bool consists_of(const CaseRecord& record, std::initializer_list<std::string_view> kinds) {
  const std::vector<OpParity>& ops = record.parity.ops;
  return !ops.empty() && std::all_of(ops.begin(), ops.end(), [&](const OpParity& op) {
    return std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end();
  });
}

bool is_stream(const CaseRecord& record) { return consists_of(record, {"copy", "triad"}); }

}  // namespace gpubench
