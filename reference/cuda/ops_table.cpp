// Which ops the CUDA backend has, and who plans each.
#include <initializer_list>
#include <string>

#include "reference/cuda/gemm.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/gemm.h"

namespace gpubench::cuda {
namespace {

constexpr std::initializer_list<OpImplementation> implementations{
    {gemm_kind, plan_gemm},
};

}  // namespace

const OpImplementation& implementation_of(OpKind kind) {
  for (const OpImplementation& implementation : implementations) {
    if (implementation.kind == kind) return implementation;
  }
  throw Unsupported("the cuda backend has no op '" + std::string(kind.name) + "'");
}

}  // namespace gpubench::cuda
