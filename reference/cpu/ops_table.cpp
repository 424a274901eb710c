// Every op that the CPU backend has, and the function that plans it.
#include <initializer_list>
#include <string>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {
namespace {

constexpr std::initializer_list<OpImplementation> implementations{
    // {x_kind, plan_x},
};

}  // namespace

const OpImplementation& implementation_of(OpKind kind) {
  for (const OpImplementation& implementation : implementations) {
    if (implementation.kind == kind) return implementation;
  }
  throw Unsupported("the cpu backend has no op '" + std::string(kind.name) + "'");
}

}  // namespace gpubench::cpu
