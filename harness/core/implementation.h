/* The C interface of an implementation under test: a shared library of custom kernels. `gpubench run --impl FILE` calls
 * it op by op, and checks and times it.
 *
 * The library exports one function, gpubench_entry(), which returns a table of functions. A call describes an op, its
 * attributes by name, its arithmetic, and its tensors (DLPack) by operand names. `gpubench explain OP` prints an op's
 * formula, shapes, attributes and error bound.
 *
 *   offers   whether the library computes this call; other calls run on the device's libraries.
 *   plan     allocates, compiles, tunes. Optional.
 *   run      does the work, or enqueues it on the stream. Called for checks and in timed loops, any number of times.
 *   destroy  ends a plan.
 *
 * Rules. No ownership crosses the interface: gpubench owns the data of a call; texts are zero-terminated. Functions
 * return a gpubench_status and write a reason to `text`; they never throw, end the process, print, or leave threads
 * working after they return. `run` changes only outputs and workspace, gives equal results for equal inputs (or
 * documents otherwise), and keeps the processor's rounding mode. Outputs have arbitrary content before.
 *
 * Versions. A library needs gpubench's major version. Within a major version structures only grow at their end, and
 * array elements (attribute, tensor) do not grow: older and newer minor versions work. */
#ifndef GPUBENCH_IMPLEMENTATION_H_
#define GPUBENCH_IMPLEMENTATION_H_

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

/* DLPack's header if installed, else the same types. */
#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef struct DLDevice {
  int32_t device_type; /* 1: CPU, 2: CUDA */
  int32_t device_id;
} DLDevice;
typedef struct DLDataType {
  uint8_t code; /* 0: int, 1: unsigned, 2: float, 4: bfloat; 10: e4m3 (without infinities), 12: e5m2, 17: e2m1 */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;     /* in elements; never null here */
  uint64_t byte_offset; /* 0 here */
} DLTensor;
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GPUBENCH_ABI_MAJOR 1
#define GPUBENCH_ABI_MINOR 0
#define GPUBENCH_ABI_VERSION ((uint32_t)(GPUBENCH_ABI_MAJOR << 16 | GPUBENCH_ABI_MINOR))

typedef enum gpubench_status {
  GPUBENCH_OK = 0,       /* done; for `offers`: yes */
  GPUBENCH_DECLINED = 1, /* for `offers`: no, with the reason in `text` */
  GPUBENCH_FAILED = 2    /* failure; the case is an error with `text` as its reason */
} gpubench_status;

typedef enum gpubench_attribute_type {
  GPUBENCH_BOOL = 0,  /* `whole` is 0 or 1 */
  GPUBENCH_WHOLE = 1, /* `whole` */
  GPUBENCH_REAL = 2,  /* `real` */
  GPUBENCH_WORD = 3,  /* `word` */
  GPUBENCH_LIST = 4   /* `list`, `count` numbers */
} gpubench_attribute_type;

/* One constant of a call: alpha, transpose_b, epilogue. Calls list all of them, also defaults. Later versions add more:
 * decline calls with unknown attributes. */
typedef struct gpubench_attribute {
  const char* name;
  int32_t type; /* gpubench_attribute_type */
  int64_t whole;
  double real;
  const char* word;
  const int64_t* list;
  size_t count;
} gpubench_attribute;

/* One operand of a call. */
typedef struct gpubench_tensor {
  const char* operand; /* "a", "bias", "dgamma" */
  size_t item;         /* the index if the operand is a list */
  const char* type;    /* "f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "f4_e2m1", "i32", "u8" */
  DLTensor dl;         /* `data` is null until the call is run; an updated output has its older version's address */
} gpubench_tensor;

typedef struct gpubench_call {
  const char* op;            /* "gemm" */
  const char* accumulate;    /* the type that sums are kept in: "f32" */
  const char* inputs;        /* how products read their factors: "exact", "tf32", "emulated" */
  int32_t fast_accumulation; /* sums of 8-bit products may be kept in fewer than 24 bits */
  int32_t split_k_in_output; /* partial sums may be rounded to the output's type */
  int32_t approximate_tanh;  /* a tanh may have a relative error of 2^-11 */
  int32_t deterministic;     /* equal inputs must give equal bits in every run */
  const gpubench_attribute* attributes;
  size_t attribute_count;
  const gpubench_tensor* tensors; /* the inputs, then the outputs */
  size_t input_count;
  size_t output_count;
} gpubench_call;

/* Filled by `plan`; zeros before. */
typedef struct gpubench_plan {
  void* state;            /* opaque, passed to `run` and `destroy` */
  size_t workspace_bytes; /* scratch memory that `run` gets, aligned to 256 bytes */
  char name[64];          /* of the kernel, as records show it: "tiles_128x64"; letters, digits, "._+-=,:" */
} gpubench_plan;

typedef struct gpubench_implementation {
  uint32_t abi_version; /* GPUBENCH_ABI_VERSION */
  uint32_t struct_size; /* sizeof(gpubench_implementation) */
  const char* version;  /* of the library, as records show it: "2.1 (a1b2c3d)"; may be null */
  gpubench_status (*offers)(const gpubench_call* call, char* text, size_t text_size);
  gpubench_status (*plan)(const gpubench_call* call, gpubench_plan* plan, char* text, size_t text_size); /* or null */
  /* `call` has addresses. Equal addresses have an equal `call` pointer, as long as the plan lives. `stream`: CUDA's, to
   * enqueue on; null on a CPU, where the work is done on return. */
  gpubench_status (*run)(void* state, const gpubench_call* call, void* workspace, void* stream, char* text,
                         size_t text_size);
  void (*destroy)(void* state); /* or null */
} gpubench_implementation;

/* Exported by the library. `abi_version`: gpubench's. Null, with the reason in `text`, if it cannot work here. */
#define GPUBENCH_ENTRY "gpubench_entry"
typedef const gpubench_implementation* (*gpubench_entry_function)(uint32_t abi_version, char* text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif /* GPUBENCH_IMPLEMENTATION_H_ */
