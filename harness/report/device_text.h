// A device as people read it: what its units are called, its libraries by the names and versions that everybody uses.
// Reports keep what the device said.
#pragma once

#include <string>
#include <string_view>

#include "harness/core/backend.h"

namespace gpubench {

/// "2 threads" of a CPU, "132 SMs" of a GPU, "1 unit" of anything else.
[[nodiscard]] std::string units_text(const DeviceInfo& device);

/// "oneDNN 2.6.3", "OpenMP 4.5" for the date 201511 by which compilers tell it; other names as they are. What shows it
/// escapes it.
[[nodiscard]] std::string library_text(std::string_view library, std::string_view version);

/// All of them: "oneDNN 2.6.3, OpenMP 4.5"; "" where there are none.
[[nodiscard]] std::string libraries_text(const DeviceInfo& device);

}  // namespace gpubench
