// Lines of "key: value" in /proc, and the processor descriptions of /proc/cpuinfo (of the first processor, if they
// differ).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// The text after "key<blanks><separator>" in the first line that has it, without surrounding blanks and quotes; else
/// "".
[[nodiscard]] std::string line_value(std::string_view text, std::string_view key, char separator = ':');

/// "AMD EPYC 9B14"; for Arm, which the kernel describes by numbers, "Neoverse-V2", or "Arm part 0xd99, implementer
/// 0x41" for unknown parts. Empty if the text has none.
[[nodiscard]] std::string processor_model(std::string_view cpuinfo);

/// The vector and matrix extensions among the processor's flags, as the kernel names them.
[[nodiscard]] std::vector<std::string> instruction_sets(std::string_view cpuinfo);

}  // namespace gpubench
