// One source, code for several x86 levels: the loader picks the widest that the machine has.
//
// Put GPUBENCH_VECTOR_CLONES before the definition of a plain function (not a template, not a lambda) that works
// through one chunk of data, and call it from parallel_chunks(). The function that the loops are written in must be the
// marked one: what OpenMP outlines from a parallel region is not cloned, and helpers it calls must be inline to be
// compiled again for each level. It is empty where the loader's choice is not to be had: sanitizers run before the
// loader is ready for it, and other compilers or processors lack it.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(GPUBENCH_SANITIZED)
#define GPUBENCH_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GPUBENCH_VECTOR_CLONES
#endif
