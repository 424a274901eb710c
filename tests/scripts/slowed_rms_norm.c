/* The example's RMS norm, FACTOR times slower for rows of 512 (-DFACTOR=1.25). The launch itself is slowed, so that
 * gpubench chooses its batches as for a slower kernel. */
#include <time.h>

#include "gpubench/implementation.h"

#define run run_example
#define gpubench_entry example_entry
#include "reference/examples/rms_norm_forward.c"
#undef run
#undef gpubench_entry

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static gpubench_status run(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                           size_t size) {
  const double start = seconds();
  const gpubench_status status = run_example(state, call, workspace, stream, text, size);
  const DLTensor* y = &call->tensors[call->input_count].dl;
  const double factor = y->shape[y->ndim - 1] == 512 ? FACTOR : 1.0;
  const double end = start + factor * (seconds() - start);
  while (seconds() < end) {
  }
  return status;
}

const gpubench_implementation* gpubench_entry(uint32_t abi_version, char* text, size_t size) {
  static gpubench_implementation slowed;
  slowed = *example_entry(abi_version, text, size);
  slowed.run = run;
  return &slowed;
}
