#include "tests/reference/cuda/described_chip.h"

#include <dlfcn.h>

#include <fstream>
#include <iterator>

#include "tests/paths.h"

namespace gpubench::cuda {

const std::vector<std::string>& described_chips() {
  static const std::vector<std::string> chips{"a100", "b200", "h200"};
  return chips;
}

std::string chip_description(const std::string& chip) {
  std::ifstream in(std::string(paths::chips) + "/" + chip + ".json");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string no_fake_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver != nullptr && dlsym(driver, "gpubench_fake_driver") != nullptr) return "";
  return "these tests need tests/reference/cuda/fake_driver.cpp as libcuda.so.1; ctest -L cudnn sets LD_LIBRARY_PATH "
         "so";
}

}  // namespace gpubench::cuda
