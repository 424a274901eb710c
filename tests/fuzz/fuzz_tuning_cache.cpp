// Fuzz target: any tuning cache file is accepted, or reported and replaced.
#include <cstdint>
#include <cstdlib>

#include "harness/report/tuning_cache_file.h"
#include "tests/fuzz/memory_folder.h"

using namespace gpubench;

namespace {

TuningSetting setting() {
  TuningSetting setting;
  setting.device.name = "A Device";
  setting.device.libraries = {{"library", "1.0"}};
  setting.tool_version = "0.1.0";
  return setting;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MemoryFolder folder;
  static const std::string name =
      std::filesystem::path(TuningCacheFile(folder.path(), setting()).path()).filename().string();
  folder.put(name, {reinterpret_cast<const char*>(data), size});
  TuningCacheFile cache(folder.path(), setting());
  (void)cache.take_complaint();
  cache.keep({{"an op", "an implementation"}});
  if (!cache.take_complaint().empty()) std::abort();
  if (TuningCacheFile(folder.path(), setting()).recall("an op") != "an implementation") std::abort();
  return 0;
}
