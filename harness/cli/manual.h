// gpubench(1), from the table of flags.
#pragma once

#include <string>
#include <string_view>

namespace gpubench {

/// The manual page in roff, with the man macros: every visible verb with its flags, the environment, exit codes.
[[nodiscard]] std::string manual_page(std::string_view version);

}  // namespace gpubench
