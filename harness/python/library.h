/* The exports of libgpubench.so in plain C. The Python package calls them by ctypes, so that one build serves every
 * version of Python. */
#ifndef GPUBENCH_LIBRARY_H_
#define GPUBENCH_LIBRARY_H_

#include "harness/core/implementation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The program. An absolute argv[0] is the path of the program for which this process stands: gpubench starts it for
 * workers and finds libraries relative to it. May be called once, as the last call of the process: it sets signals and
 * streams as main() does. Returns the exit code. */
int gpubench_main(int argc, char** argv);

/* Registers the functions of FILE for gpubench_main() with --impl FILE. Both arguments must outlive that call. */
void gpubench_register(const char* file, const gpubench_implementation* table);

typedef struct gpubench_check_options {
  int32_t sample;  /* not 0: judge a sample if judging all elements takes long */
  int32_t threads; /* 0: one per processor */
  uint64_t seed;   /* of the sample */
} gpubench_check_options;

typedef struct gpubench_verdict {
  int32_t passed;
  char verdict[16]; /* "pass", "fail", "not_proven" */
  double error_over_bound;
  int64_t judged, elements, bad;
  int32_t worst_rank; /* axes of the worst element's tensor; -1: no worst element */
  int64_t worst_index[16];
  char worst_operand[64];
  double got, want, bound;
  char message[1024]; /* why it did not pass */
  char rule[512];     /* rule of the worst element's bound */
} gpubench_verdict;

/* Judges the outputs of a call against the fp64 textbook on its inputs. Tensors must be on the host; they are named by
 * operand, in any order within inputs and outputs. Missing attributes have their defaults. Thread-safe.
 * GPUBENCH_FAILED, with the reason in `text`: an unknown op or attribute, a missing tensor, inconsistent shapes. */
gpubench_status gpubench_check(const gpubench_call* call, const gpubench_check_options* options,
                               gpubench_verdict* verdict, char* text, size_t text_size);

/* Writes a description of an op to `text`. Line 1: inputs ("a b c_in? bias?"; '?' optional, '*' list); line 2: outputs;
 * then for each attribute, separated by tabs: name, type (gpubench_attribute_type), default, inputs that it requires.
 * GPUBENCH_FAILED: unknown op; `text` has the nearest name. */
gpubench_status gpubench_describe(const char* op, char* text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif /* GPUBENCH_LIBRARY_H_ */
