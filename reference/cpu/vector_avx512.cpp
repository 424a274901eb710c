#include "reference/cpu/vector_avx512.h"

#include "reference/cpu/usable_isa.h"

namespace gpubench::cpu::avx512 {

#if defined(GPUBENCH_HAS_AVX512_CODE)
bool announced() {
  // The same question that the loader answers for GPUBENCH_VECTOR_CLONES.
  return __builtin_cpu_supports("avx512f") > 0 && __builtin_cpu_supports("avx512bw") > 0 &&
         __builtin_cpu_supports("avx512vl") > 0 && __builtin_cpu_supports("avx512dq") > 0;
}
bool announced_bf16() { return announced() && __builtin_cpu_supports("avx512bf16") > 0; }
#else
bool announced() { return false; }
bool announced_bf16() { return false; }
#endif

bool available() {
  static const bool answer = announced() && own_kernels_usable(own_isa);
  return answer;
}

bool available_bf16() {
  static const bool answer = announced_bf16() && available() && own_kernels_usable(own_isa_bf16);
  return answer;
}

}  // namespace gpubench::cpu::avx512
