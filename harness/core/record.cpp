#include "harness/core/record.h"

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

}  // namespace gpubench
