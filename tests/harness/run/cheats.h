/* An implementation that misbehaves as the environment variable GPUBENCH_CHEAT says: one of the names in cheats.c. */
#ifndef GPUBENCH_TESTS_CHEATS_H_
#define GPUBENCH_TESTS_CHEATS_H_

#include "harness/core/implementation.h"

#ifdef __cplusplus
extern "C" {
#endif
extern const gpubench_implementation cheats;
#ifdef __cplusplus
}
#endif
#endif /* GPUBENCH_TESTS_CHEATS_H_ */
