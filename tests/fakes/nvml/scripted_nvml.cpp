#include "tests/fakes/nvml/fake_nvml.h"

#include <dlfcn.h>

#include <stdexcept>

#include "tests/paths.h"

namespace gpubench {

ScriptedNvml::ScriptedNvml(const std::string& kind)
    : path_(std::string(paths::fake_nvml_folder) + "/" + kind + "/libnvidia-ml.so.1") {
  void* library = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("no fake NVML at " + path_);
  script_ = reinterpret_cast<FakeNvml* (*)()>(::dlsym(library, "fake_nvml"))();
  *script_ = FakeNvml{};
}

}  // namespace gpubench
