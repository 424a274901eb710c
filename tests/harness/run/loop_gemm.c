/* gemm in plain loops, as somebody would bring it: f32, two axes or three, transposes, alpha, beta and a bias. */
#include "tests/harness/run/loop_gemm.h"

#include <stdio.h>
#include <string.h>

static const gpubench_attribute* attribute(const gpubench_call* call, const char* name) {
  for (size_t i = 0; i < call->attribute_count; ++i) {
    if (strcmp(call->attributes[i].name, name) == 0) return &call->attributes[i];
  }
  return NULL;
}

static const gpubench_tensor* operand(const gpubench_call* call, const char* name) {
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    if (strcmp(call->tensors[i].operand, name) == 0) return &call->tensors[i];
  }
  return NULL;
}

static int refuse(char* text, size_t size, const char* why, const char* what) {
  snprintf(text, size, "%s: %s", why, what);
  return 1;
}

static int offers(const gpubench_call* call, size_t* workspace_bytes, char* text, size_t size) {
  *workspace_bytes = 0;
  if (strcmp(call->op, "gemm") != 0) return refuse(text, size, "not an op of this library", call->op);
  if (strcmp(attribute(call, "epilogue")->word, "none") != 0) return refuse(text, size, "no epilogue", call->op);
  if (strcmp(call->inputs, "exact") != 0 || strcmp(call->accumulate, "f32") != 0) {
    return refuse(text, size, "only f32 arithmetic", call->accumulate);
  }
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    if (strcmp(call->tensors[i].type, "f32") != 0) return refuse(text, size, "only f32", call->tensors[i].type);
  }
  return 0;
}

/* Element (row, column) of one matrix of a batch. */
static float* at(const gpubench_tensor* t, int64_t batch, int64_t row, int64_t column) {
  const int64_t* strides = t->strides + (t->rank - 2);
  const int64_t first = t->rank == 3 ? batch * t->strides[0] : 0;
  return (float*)t->data + first + row * strides[0] + column * strides[1];
}

static int run(const gpubench_call* call, void* workspace, void* stream, char* text, size_t size) {
  const gpubench_tensor* a = operand(call, "a");
  const gpubench_tensor* b = operand(call, "b");
  const gpubench_tensor* c = operand(call, "c");
  const gpubench_tensor* bias = operand(call, "bias");
  const gpubench_tensor* c_in = operand(call, "c_in");
  const int a_turned = attribute(call, "transpose_a")->whole != 0;
  const int b_turned = attribute(call, "transpose_b")->whole != 0;
  const float alpha = (float)attribute(call, "alpha")->real;
  const float beta = (float)attribute(call, "beta")->real;
  const int64_t k = a->shape[a->rank - (a_turned ? 2 : 1)];
  (void)workspace;
  if (stream != NULL) return refuse(text, size, "the tensors must lie in the host's memory", call->op);
  for (int64_t batch = 0; batch < (c->rank == 3 ? c->shape[0] : 1); ++batch) {
    for (int64_t i = 0; i < c->shape[c->rank - 2]; ++i) {
      for (int64_t j = 0; j < c->shape[c->rank - 1]; ++j) {
        float sum = 0.0F;
        for (int64_t p = 0; p < k; ++p) {
          sum += (a_turned ? *at(a, batch, p, i) : *at(a, batch, i, p)) *
                 (b_turned ? *at(b, batch, j, p) : *at(b, batch, p, j));
        }
        sum *= alpha;
        if (c_in != NULL) sum += beta * *at(c_in, batch, i, j);
        if (bias != NULL) sum += ((const float*)bias->data)[j * bias->strides[0]];
        *at(c, batch, i, j) = sum;
      }
    }
  }
  return 0;
}

/* The same, but the last term of every sum is forgotten in the last row. */
static int run_wrong(const gpubench_call* call, void* workspace, void* stream, char* text, size_t size) {
  const int status = run(call, workspace, stream, text, size);
  const gpubench_tensor* a = operand(call, "a");
  const gpubench_tensor* b = operand(call, "b");
  const gpubench_tensor* c = operand(call, "c");
  const int64_t row = c->shape[c->rank - 2] - 1;
  const int a_turned = attribute(call, "transpose_a")->whole != 0;
  const int64_t k = a->shape[a->rank - (a_turned ? 2 : 1)] - 1;
  for (int64_t j = 0; j < c->shape[c->rank - 1]; ++j) {
    const int b_turned = attribute(call, "transpose_b")->whole != 0;
    *at(c, 0, row, j) -=
        (a_turned ? *at(a, 0, k, row) : *at(a, 0, row, k)) * (b_turned ? *at(b, 0, j, k) : *at(b, 0, k, j));
  }
  return status;
}

static int run_failing(const gpubench_call* call, void* workspace, void* stream, char* text, size_t size) {
  (void)workspace;
  (void)stream;
  return refuse(text, size, "out of luck", call->op);
}

const gpubench_implementation loop_gemm = {GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "loops", offers, run};
const gpubench_implementation wrong_gemm = {GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "wrong", offers,
                                            run_wrong};
const gpubench_implementation failing_gemm = {GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "failing", offers,
                                              run_failing};
