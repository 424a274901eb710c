// The stand-in for cuBLASLt follows its manual, unless a test injects trouble.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace gpubench::testing {

struct CublasLtTrouble {
  /// The epilogues' tanh has a relative error of 2^-11 in either direction, the maximum of tanh.approx.f32.
  bool approximate_tanh = false;
  /// Heuristics return no algorithm.
  bool no_algorithm = false;
  /// Algorithms exist only for matrices promised to have at least this alignment.
  std::uint32_t min_alignment = 1;
  /// Scratch memory of the second of the two algorithms.
  std::size_t scratch_bytes = 512;
  /// The call with this number, counted from 0, returns `status` and does nothing. Calls that free something or return
  /// no status are not counted.
  int failing_call = -1;
  cublasStatus_t status = CUBLAS_STATUS_INTERNAL_ERROR;
};

/// Injects this trouble while it lives. One at a time.
class WithTrouble {
 public:
  explicit WithTrouble(const CublasLtTrouble& trouble);
  ~WithTrouble();
  WithTrouble(const WithTrouble&) = delete;
  WithTrouble& operator=(const WithTrouble&) = delete;
  /// Calls since construction.
  [[nodiscard]] int calls() const;
};

}  // namespace gpubench::testing
