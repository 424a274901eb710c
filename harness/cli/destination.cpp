#include "harness/cli/destination.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/core/error.h"
#include "harness/report/atomic_file.h"

namespace gpubench {
namespace {

// A folder that is not there yet: the time, with a number behind it where two runs start in one second.
std::string fresh_folder(std::time_t now) {
  std::tm utc{};
  gmtime_r(&now, &utc);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  std::string folder = fmt::format("gpubench-out/{}", stamp);
  make_folder("gpubench-out");
  for (int number = 2; !std::filesystem::create_directory(folder); ++number) {
    folder = fmt::format("gpubench-out/{}-{}", stamp, number);
  }
  return folder;
}

}  // namespace

Destination open_destination(const Options& options, std::time_t now) {
  Destination destination;
  const char* flag = "--json";
  try {
    if (options.json == "-") {
      destination.to_stdout = true;
    } else if (options.json) {
      destination.json_file = *options.json;
      require_writable(destination.json_file);
    }
    if (!options.out && options.json) return destination;
    flag = options.out ? "--out" : "the output folder (choose one with --out)";
    if (options.out) make_folder(*options.out);
    const std::filesystem::path folder = options.out ? *options.out : fresh_folder(now);
    destination.file = (folder / "report.json").string();
    require_writable(destination.file);
  } catch (const std::exception& e) {
    throw UsageError(fmt::format("{}: {}", flag, e.what()));
  }
  return destination;
}

}  // namespace gpubench
