// Fuzz target: whatever stands where choices are remembered, it is taken, or complained of and written anew.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/report/tuning_cache.h"

using namespace gpubench;

namespace {

// In memory where the system has such a place, and gone when the program ends.
class Folder {
 public:
  Folder() {
    std::string name =
        (std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") + std::string("/gpubench_fuzz.XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TuningSetting setting() {
  TuningSetting setting;
  setting.device.name = "A Device";
  setting.device.libraries = {{"library", "1.0"}};
  setting.tool_version = "0.1.0";
  return setting;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  static const std::string path = TuningCache(folder.path(), setting()).path();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  TuningCache cache(folder.path(), setting());
  (void)cache.take_complaint();
  cache.keep({{"an op", "an implementation"}});
  if (!cache.take_complaint().empty()) std::abort();
  if (TuningCache(folder.path(), setting()).recall("an op") != "an implementation") std::abort();
  return 0;
}
