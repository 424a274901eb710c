/* gemm in plain loops: f32, two axes or three, transposes, alpha, beta and a bias. `gpubench explain gemm` says what
 * gemm computes. */
#include <stdio.h>
#include <string.h>

#include "gpubench/implementation.h"

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

static gpubench_status refuse(char* text, size_t size, const char* why, const char* what) {
  snprintf(text, size, "%s: %s", why, what);
  return GPUBENCH_DECLINED;
}

static gpubench_status offers(const gpubench_call* call, char* text, size_t size) {
  if (strcmp(call->op, "gemm") != 0) return refuse(text, size, "not an op of this library", call->op);
  if (strcmp(attribute(call, "epilogue")->word, "none") != 0) return refuse(text, size, "no epilogue", call->op);
  if (strcmp(call->inputs, "exact") != 0 || strcmp(call->accumulate, "f32") != 0) {
    return refuse(text, size, "only f32 arithmetic", call->accumulate);
  }
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    if (strcmp(call->tensors[i].type, "f32") != 0) return refuse(text, size, "only f32", call->tensors[i].type);
  }
  return GPUBENCH_OK;
}

/* Element (row, column) of one matrix of a batch. */
static float* at(const gpubench_tensor* t, int64_t batch, int64_t row, int64_t column) {
  const int64_t* strides = t->dl.strides + (t->dl.ndim - 2);
  const int64_t first = t->dl.ndim == 3 ? batch * t->dl.strides[0] : 0;
  return (float*)t->dl.data + first + row * strides[0] + column * strides[1];
}

static gpubench_status run(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                           size_t size) {
  const gpubench_tensor* a = operand(call, "a");
  const gpubench_tensor* b = operand(call, "b");
  const gpubench_tensor* c = operand(call, "c");
  const gpubench_tensor* bias = operand(call, "bias");
  const gpubench_tensor* c_in = operand(call, "c_in");
  const int a_turned = attribute(call, "transpose_a")->whole != 0;
  const int b_turned = attribute(call, "transpose_b")->whole != 0;
  const float alpha = (float)attribute(call, "alpha")->real;
  const float beta = (float)attribute(call, "beta")->real;
  const int64_t k = a->dl.shape[a->dl.ndim - (a_turned ? 2 : 1)];
  (void)state;
  (void)workspace;
  if (stream != NULL) return refuse(text, size, "the tensors must lie in the host's memory", call->op);
  for (int64_t batch = 0; batch < (c->dl.ndim == 3 ? c->dl.shape[0] : 1); ++batch) {
    for (int64_t i = 0; i < c->dl.shape[c->dl.ndim - 2]; ++i) {
      for (int64_t j = 0; j < c->dl.shape[c->dl.ndim - 1]; ++j) {
        float sum = 0.0F;
        for (int64_t p = 0; p < k; ++p) {
          sum += (a_turned ? *at(a, batch, p, i) : *at(a, batch, i, p)) *
                 (b_turned ? *at(b, batch, j, p) : *at(b, batch, p, j));
        }
        sum *= alpha;
        if (c_in != NULL) sum += beta * *at(c_in, batch, i, j);
        if (bias != NULL) sum += ((const float*)bias->dl.data)[j * bias->dl.strides[0]];
        *at(c, batch, i, j) = sum;
      }
    }
  }
  return GPUBENCH_OK;
}

static const gpubench_implementation table = {
    GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "1.0", offers, NULL, run, NULL};

const gpubench_implementation* gpubench_entry(uint32_t abi_version, char* text, size_t size) {
  if (abi_version >> 16 == GPUBENCH_ABI_MAJOR) return &table;
  snprintf(text, size, "made for version %d of the interface", GPUBENCH_ABI_MAJOR);
  return NULL;
}
