/* Takes every op, writes nothing, and prints. */
#include <stdio.h>

#include "gpubench/implementation.h"

static gpubench_status offers(const gpubench_call* call, char* text, size_t size) {
  (void)call, (void)text, (void)size;
  puts("offers to the output");
  return GPUBENCH_OK;
}

static gpubench_status run(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                           size_t size) {
  (void)state, (void)call, (void)workspace, (void)stream, (void)text, (void)size;
  fputs("runs to the error output", stderr);
  return GPUBENCH_OK;
}

const gpubench_implementation* gpubench_entry(uint32_t abi_version, char* text, size_t size) {
  static const gpubench_implementation table = {
      GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), NULL, offers, NULL, run, NULL};
  (void)abi_version, (void)text, (void)size;
  return &table;
}
