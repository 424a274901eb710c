// Which revision of the sources a program was built from; the definition is written by
// scripts/cmake/GpubenchRevision.cmake.
#pragma once

#include <string_view>

namespace gpubench {

/// Twelve digits of the commit, with "-dirty" where tracked files differed from it; "" where nobody could tell.
[[nodiscard]] std::string_view built_revision();

}  // namespace gpubench
