/* Implementations of gemm in C, for tests: one right, one wrong, one that fails. */
#pragma once

#include "harness/core/implementation.h"

#ifdef __cplusplus
extern "C" {
#endif
extern const gpubench_implementation loop_gemm, wrong_gemm, failing_gemm;
#ifdef __cplusplus
}
#endif
