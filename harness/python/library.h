/* What libgpubench.so exports, in plain C: gpubench for a process that some other program has started. The Python
 * package beside this file is made on it, by ctypes, so that one build serves every version of Python. */
#ifndef GPUBENCH_LIBRARY_H_
#define GPUBENCH_LIBRARY_H_

#include "harness/core/implementation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The program. Where argv[0] is an absolute path, this process stands in for that program: its children and libraries
 * are looked for there. Once in a process, and nothing after it: it sets signals and streams as a program's main()
 * does. Returns the exit code. */
int gpubench_main(int argc, char** argv);

/* For a gpubench_main() with --impl FILE: the functions that this process has made of it. Both must outlive that. */
void gpubench_register(const char* file, const gpubench_implementation* table);

typedef struct gpubench_check_options {
  int32_t sample;  /* not 0: a sample of the elements, where judging them all takes long */
  int32_t threads; /* 0: one for each processor */
  uint64_t seed;   /* of the sample */
} gpubench_check_options;

typedef struct gpubench_verdict {
  int32_t passed;
  char verdict[16]; /* "pass", "fail", "not_proven" */
  double error_over_bound;
  int64_t judged, elements, bad;
  int32_t worst_rank; /* axes of the worst element's tensor; -1: there is no worst element */
  int64_t worst_index[16];
  char worst_operand[64];
  double got, want, bound;
  char message[1024]; /* why it is not a pass */
  char rule[512];     /* the rule of the bound that judged the worst element */
} gpubench_verdict;

/* Judges the outputs of a call against the fp64 textbook on its inputs. Tensors are on the host, in any order, named by
 * operand; those of `call` that are outputs hold results. Attributes left out are at their defaults. Thread-safe.
 * GPUBENCH_FAILED, with the reason in `text`: it cannot be judged (no such op or attribute, a tensor is missing, shapes
 * that do not fit each other). */
gpubench_status gpubench_check(const gpubench_call* call, const gpubench_check_options* options,
                               gpubench_verdict* verdict, char* text, size_t text_size);

/* What an op has, in `text`, line by line: its inputs ("a b c_in? bias?": '?' where the attributes ask for it, '*' a
 * list), its outputs, then each attribute with its type (gpubench_attribute_type), its default, and the inputs that it
 * asks for where it is a switch that does, between tabs. GPUBENCH_FAILED: there is no such op; `text` names the
 * nearest. */
gpubench_status gpubench_describe(const char* op, char* text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif /* GPUBENCH_LIBRARY_H_ */
