/* The example of a gemm in loops, and versions that are wrong or fail. */
#include "tests/harness/run/loop_gemm.h"

#include "reference/examples/gemm.c"

/* The last term of every sum in the last row is missing. */
static gpubench_status run_wrong(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                                 size_t size) {
  const gpubench_status status = run(state, call, workspace, stream, text, size);
  const gpubench_tensor* a = operand(call, "a");
  const gpubench_tensor* b = operand(call, "b");
  const gpubench_tensor* c = operand(call, "c");
  const int64_t row = c->dl.shape[c->dl.ndim - 2] - 1;
  const int a_turned = attribute(call, "transpose_a")->whole != 0;
  const int64_t k = a->dl.shape[a->dl.ndim - (a_turned ? 2 : 1)] - 1;
  for (int64_t j = 0; j < c->dl.shape[c->dl.ndim - 1]; ++j) {
    const int b_turned = attribute(call, "transpose_b")->whole != 0;
    *at(c, 0, row, j) -=
        (a_turned ? *at(a, 0, k, row) : *at(a, 0, row, k)) * (b_turned ? *at(b, 0, j, k) : *at(b, 0, k, j));
  }
  return status;
}

static gpubench_status run_failing(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                                   size_t size) {
  (void)state;
  (void)workspace;
  (void)stream;
  return refuse(text, size, "out of luck", call->op);
}

const gpubench_implementation loop_gemm = {
    GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "1.0", offers, NULL, run, NULL};
const gpubench_implementation wrong_gemm = {
    GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "1.0", offers, NULL, run_wrong, NULL};
const gpubench_implementation failing_gemm = {
    GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "1.0", offers, NULL, run_failing, NULL};
