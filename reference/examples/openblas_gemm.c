/* A BLAS as somebody would bring it: gemm in f32 by cblas_sgemm, with transposes, alpha, beta and batches. Built with
 * OpenBLAS here; any other CBLAS does. */
#include <cblas.h>
#include <stdio.h>
#include <string.h>

#include "gpubench/implementation.h"

static const gpubench_attribute* attribute(const gpubench_call* call, const char* name) {
  for (size_t i = 0; i < call->attribute_count; ++i) {
    if (strcmp(call->attributes[i].name, name) == 0) return &call->attributes[i];
  }
  return NULL;
}

static const DLTensor* operand(const gpubench_call* call, const char* name) {
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    if (strcmp(call->tensors[i].operand, name) == 0) return &call->tensors[i].dl;
  }
  return NULL;
}

static gpubench_status decline(char* text, size_t size, const char* why) {
  snprintf(text, size, "%s", why);
  return GPUBENCH_DECLINED;
}

static gpubench_status offers(const gpubench_call* call, char* text, size_t size) {
  if (strcmp(call->op, "gemm") != 0) return decline(text, size, "only gemm");
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    const DLTensor* t = &call->tensors[i].dl;
    if (strcmp(call->tensors[i].type, "f32") != 0) return decline(text, size, "only f32");
    if (t->device.device_type != 1) return decline(text, size, "only on a CPU");
    if (t->ndim > 1 && t->strides[t->ndim - 1] != 1) return decline(text, size, "only dense rows");
  }
  if (strcmp(call->inputs, "exact") != 0) return decline(text, size, "only exact inputs");
  if (operand(call, "bias") != NULL || strcmp(attribute(call, "epilogue")->word, "none") != 0)
    return decline(text, size, "no bias and no epilogue");
  return GPUBENCH_OK;
}

static gpubench_status run(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                           size_t size) {
  const DLTensor* a = operand(call, "a");
  const DLTensor* b = operand(call, "b");
  const DLTensor* c = operand(call, "c");
  const int last = c->ndim - 1;
  const int a_turned = attribute(call, "transpose_a")->whole != 0;
  const int b_turned = attribute(call, "transpose_b")->whole != 0;
  const int64_t batches = last == 2 ? c->shape[0] : 1;
  (void)state, (void)workspace, (void)stream, (void)text, (void)size;
  /* With beta, c has the address of c_in, as in BLAS. */
  for (int64_t i = 0; i < batches; ++i) {
    cblas_sgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans, b_turned ? CblasTrans : CblasNoTrans,
                (int)c->shape[last - 1], (int)c->shape[last], (int)a->shape[a_turned ? last - 1 : last],
                (float)attribute(call, "alpha")->real,
                (const float*)a->data + (last == 2 ? i * a->strides[0] : 0), (int)a->strides[last - 1],
                (const float*)b->data + (last == 2 ? i * b->strides[0] : 0), (int)b->strides[last - 1],
                (float)attribute(call, "beta")->real, (float*)c->data + (last == 2 ? i * c->strides[0] : 0),
                (int)c->strides[last - 1]);
  }
  return GPUBENCH_OK;
}

const gpubench_implementation* gpubench_entry(uint32_t abi_version, char* text, size_t size) {
  static gpubench_implementation table = {
      GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), NULL, offers, NULL, run, NULL};
  (void)abi_version, (void)text, (void)size;
#ifdef OPENBLAS_VERSION
  table.version = OPENBLAS_VERSION;
#endif
  return &table;
}
