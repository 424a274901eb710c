/* @OP@, to be written. `gpubench explain @OP@` says what it computes, with the bound that its result is held to. */
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

/* What this takes: say no to all that `run` cannot do, with the reason. */
static gpubench_status offers(const gpubench_call* call, char* text, size_t size) {
  const char* why = "run() is not written yet"; /* NULL, once it is */
  if (strcmp(call->op, "@OP@") != 0) why = "only @OP@";
  if (why == NULL) return GPUBENCH_OK;
  snprintf(text, size, "%s", why);
  return GPUBENCH_DECLINED;
}

/* Inputs: @INPUTS@.
 * Outputs: @OUTPUTS@. A name with "?" is there where the attributes ask for it (else operand() is
 * NULL), one with "*" is a list (gpubench_tensor.item). */
static gpubench_status run(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                           size_t size) {
  (void)state, (void)workspace, (void)stream, (void)attribute, (void)operand, (void)call;
  snprintf(text, size, "run() is not written yet");
  return GPUBENCH_FAILED;
}

static const gpubench_implementation table = {
    GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "0.1", offers, NULL, run, NULL};

#ifdef __cplusplus
extern "C"
#endif
const gpubench_implementation* gpubench_entry(uint32_t abi_version, char* text, size_t size) {
  (void)abi_version, (void)text, (void)size;
  return &table;
}
