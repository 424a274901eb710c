/* rms_norm_forward in plain loops: f32 and bf16, rows of any length. `gpubench explain rms_norm_forward` says what it
 * computes: y = gamma x rstd, rstd = 1 / sqrt(mean of x^2 + epsilon). */
#include <math.h>
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

static int is_bf16(const gpubench_tensor* t) { return strcmp(t->type, "bf16") == 0; }

static float loaded(const gpubench_tensor* t, int64_t i) {
  if (!is_bf16(t)) return ((const float*)t->dl.data)[i];
  const uint32_t bits = (uint32_t)((const uint16_t*)t->dl.data)[i] << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

/* Rounded to nearest, ties to even. */
static void stored(const gpubench_tensor* t, int64_t i, float value) {
  if (!is_bf16(t)) {
    ((float*)t->dl.data)[i] = value;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if (value == value) bits += 0x7fffU + ((bits >> 16) & 1U);
  ((uint16_t*)t->dl.data)[i] = (uint16_t)(bits >> 16 | (value != value ? 1U : 0U));
}

static gpubench_status offers(const gpubench_call* call, char* text, size_t size) {
  const char* why = NULL;
  if (strcmp(call->op, "rms_norm_forward") != 0) {
    why = "only rms_norm_forward";
  } else if (operand(call, "x")->dl.device.device_type != 1) {
    why = "only on a CPU";
  } else if (attribute(call, "rounds_before_gamma")->whole != 0) {
    why = "the row is not rounded before gamma";
  } else {
    for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
      const gpubench_tensor* t = &call->tensors[i];
      if (strcmp(t->type, "f32") != 0 && !is_bf16(t)) why = "only f32 and bf16";
      int64_t dense = 1;
      for (int32_t axis = t->dl.ndim; axis-- > 0; dense *= t->dl.shape[axis]) {
        if (t->dl.strides[axis] != dense) why = "only dense tensors";
      }
    }
  }
  if (why == NULL) return GPUBENCH_OK;
  snprintf(text, size, "%s", why);
  return GPUBENCH_DECLINED;
}

static gpubench_status run(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                           size_t size) {
  const gpubench_tensor* x = operand(call, "x");
  const gpubench_tensor* gamma = operand(call, "gamma");
  const gpubench_tensor* y = operand(call, "y");
  const gpubench_tensor* rstd = operand(call, "rstd");
  const double epsilon = attribute(call, "epsilon")->real;
  const int64_t n = x->dl.shape[x->dl.ndim - 1];
  int64_t rows = 1;
  for (int32_t axis = 0; axis + 1 < x->dl.ndim; ++axis) rows *= x->dl.shape[axis];
  (void)state, (void)workspace, (void)stream, (void)text, (void)size;
  for (int64_t row = 0; row < rows; ++row) {
    /* Double: in a sequential f32 sum, thousands of equal squares round the same way, and the errors add up. */
    double squares = 0.0;
    for (int64_t i = 0; i < n; ++i) squares += (double)loaded(x, row * n + i) * (double)loaded(x, row * n + i);
    const float scale = (float)(1.0 / sqrt(squares / (double)n + epsilon));
    for (int64_t i = 0; i < n; ++i) stored(y, row * n + i, loaded(gamma, i) * loaded(x, row * n + i) * scale);
    stored(rstd, row, scale);
  }
  return GPUBENCH_OK;
}

static const gpubench_implementation table = {
    GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "1.0", offers, NULL, run, NULL};

const gpubench_implementation* gpubench_entry(uint32_t abi_version, char* text, size_t size) {
  (void)abi_version, (void)text, (void)size;
  return &table;
}
