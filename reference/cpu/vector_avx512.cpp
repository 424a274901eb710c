#include "reference/cpu/vector_avx512.h"

namespace gpubench::cpu::avx512 {

#if defined(GPUBENCH_HAS_AVX512_CODE)
bool available() {
  // The same question that the loader answers for GPUBENCH_VECTOR_CLONES.
  static const bool answer = __builtin_cpu_supports("avx512f") > 0 && __builtin_cpu_supports("avx512bw") > 0 &&
                             __builtin_cpu_supports("avx512vl") > 0 && __builtin_cpu_supports("avx512dq") > 0;
  return answer;
}
#else
bool available() { return false; }
#endif

}  // namespace gpubench::cpu::avx512
