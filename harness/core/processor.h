// What /proc says in lines of "key: value", and what /proc/cpuinfo says so of the processors: of the first one, where
// they differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// What follows "key<blanks><separator>" in the first line that has it, without blanks and quotes around it; "" where
/// none has.
[[nodiscard]] std::string line_value(std::string_view text, std::string_view key, char separator = ':');

/// "AMD EPYC 9B14"; for Arm's, which the kernel describes by numbers, "Neoverse-V2", or "Arm part 0xd99, implementer
/// 0x41" where the part has no name here. Empty where the text says nothing.
[[nodiscard]] std::string processor_model(std::string_view cpuinfo);

/// The vector and matrix extensions among the processor's flags, in the kernel's words.
[[nodiscard]] std::vector<std::string> instruction_sets(std::string_view cpuinfo);

}  // namespace gpubench
