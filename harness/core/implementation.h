/* The interface of a user's own implementation of ops, in plain C: a call with its attributes and tensors by
 * name, as reference/ops declares them, and a table of functions. gpubench checks and times it like any other.
 *
 * Nothing is owned across this interface: everything that a call points to belongs to gpubench and stays as long as
 * the call does; texts end in a zero. Functions must not throw and must not end the process. Version 0: it may change
 * until libraries are loaded by it. */
#pragma once

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#ifdef __cplusplus
extern "C" {
#endif

#define GPUBENCH_ABI_VERSION 0

/* One constant of a call: alpha, transpose_b, epilogue. All that the op has are listed, default or not. */
typedef struct gpubench_attribute {
  const char* name;
  enum { GPUBENCH_BOOL, GPUBENCH_WHOLE, GPUBENCH_REAL, GPUBENCH_WORD, GPUBENCH_LIST } type;
  int64_t whole;       /* GPUBENCH_BOOL (0 or 1), GPUBENCH_WHOLE */
  double real;         /* GPUBENCH_REAL */
  const char* word;    /* GPUBENCH_WORD */
  const int64_t* list; /* GPUBENCH_LIST: `count` numbers */
  size_t count;
} gpubench_attribute;

/* One operand. Strides count elements; an updated operand has the address of its older version. */
typedef struct gpubench_tensor {
  const char* operand; /* "a", "bias", "dgamma" */
  size_t item;         /* which one, where the operand is a list */
  const char* type;    /* "f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "i32", "u8" */
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
  void* data; /* null until the call is run */
} gpubench_tensor;

typedef struct gpubench_call {
  const char* op;            /* "gemm" */
  const char* accumulate;    /* the type that sums are kept in: "f32" */
  const char* inputs;        /* how products read what they multiply: "exact", "tf32", "emulated" */
  int32_t fast_accumulation; /* sums of 8-bit products may be kept in fewer than 24 bits */
  int32_t split_k_in_output; /* partial sums may be rounded to the output's type */
  int32_t approximate_tanh;  /* a tanh may be off by 2^-11 of itself */
  const gpubench_attribute* attributes;
  size_t attribute_count;
  const gpubench_tensor* tensors; /* the inputs, then the outputs */
  size_t input_count;
  size_t output_count;
} gpubench_call;

typedef struct gpubench_implementation {
  uint32_t abi_version; /* GPUBENCH_ABI_VERSION */
  uint32_t struct_size; /* sizeof(gpubench_implementation) */
  const char* name;     /* as records show it */
  /* 0 where it takes the call, with the bytes of scratch memory that it needs; else the reason in `text`. */
  int (*offers)(const gpubench_call* call, size_t* workspace_bytes, char* text, size_t text_size);
  /* Does the work, or enqueues it on `stream` (CUDA; null on the CPU). 0; else what failed in `text`. */
  int (*run)(const gpubench_call* call, void* workspace, void* stream, char* text, size_t text_size);
} gpubench_implementation;

#ifdef __cplusplus
}
#endif
