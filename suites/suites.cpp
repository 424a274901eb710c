#include "suites/suites.h"

#include <vector>

namespace gpubench {

std::span<const Suite> all_suites() {
  static const std::vector<Suite> all{
      suites::gemm(),   suites::conv(), suites::attention(), suites::norm(),        suites::optimizer(),
      suites::memory(), suites::link(), suites::launch(),    suites::collectives(), suites::transformer(),
  };
  return all;
}

}  // namespace gpubench
