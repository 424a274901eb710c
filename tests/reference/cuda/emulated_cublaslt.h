// How the stand-in for cuBLASLt behaves: as its manual says, unless a test asks for trouble.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace gpubench::testing {

struct CublasLtTrouble {
  /// The epilogues' tanh is off by 2^-11 of itself, to either side: the most that tanh.approx.f32 may be.
  bool approximate_tanh = false;
  /// Heuristics know nothing.
  bool no_algorithm = false;
  /// Algorithms there are only for matrices of which at least this alignment is promised.
  std::uint32_t min_alignment = 1;
  /// What the second of the two algorithms asks for as scratch memory.
  std::size_t scratch_bytes = 512;
  /// The call with this number, counted from 0, returns `status` and does nothing. Calls that free something don't
  /// count, nor do those that return no status.
  int failing_call = -1;
  cublasStatus_t status = CUBLAS_STATUS_INTERNAL_ERROR;
};

/// While it lives, the library is in this trouble. One at a time.
class WithTrouble {
 public:
  explicit WithTrouble(const CublasLtTrouble& trouble);
  ~WithTrouble();
  WithTrouble(const WithTrouble&) = delete;
  WithTrouble& operator=(const WithTrouble&) = delete;
  /// Counted since then.
  [[nodiscard]] int calls() const;
};

}  // namespace gpubench::testing
