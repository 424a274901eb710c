#include "harness/report/device_text.h"

#include <fmt/format.h>

#include <vector>

#include "harness/report/text_table.h"

namespace gpubench {
namespace {

// The values of _OPENMP, as each release of the specification defines its own.
std::string_view openmp_release(std::string_view date) {
  struct Release {
    std::string_view date;
    std::string_view number;
  };
  static constexpr Release releases[] = {{"200805", "3.0"}, {"201107", "3.1"}, {"201307", "4.0"}, {"201511", "4.5"},
                                         {"201811", "5.0"}, {"202011", "5.1"}, {"202111", "5.2"}, {"202411", "6.0"}};
  for (const Release& release : releases) {
    if (release.date == date) return release.number;
  }
  return date;
}

}  // namespace

std::string units_text(const DeviceInfo& device) {
  const std::string_view one = device.kind == "cpu" ? "thread" : device.kind == "cuda" ? "SM" : "unit";
  return fmt::format("{} {}{}", device.units, one, device.units == 1 ? "" : "s");
}

std::string library_text(std::string_view library, std::string_view version) {
  if (library == "openmp") return fmt::format("OpenMP {}", openmp_release(version));
  if (library == "onednn") {
    const std::string_view unknown = " (N/A)";  // as Debian's build says of its revision
    if (version.ends_with(unknown)) version.remove_suffix(unknown.size());
    return fmt::format("oneDNN {}", version);
  }
  return fmt::format("{} {}", library, version);
}

std::string libraries_text(const DeviceInfo& device) {
  std::vector<std::string> all;
  for (const auto& [library, version] : device.libraries) all.push_back(library_text(library, version));
  return joined(all);
}

}  // namespace gpubench
