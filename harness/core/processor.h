// What /proc/cpuinfo says of a machine's processors: of the first one, where they differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// "AMD EPYC 9B14"; for Arm's, which the kernel describes by numbers, "Neoverse-V2", or "Arm part 0xd99, implementer
/// 0x41" where the part has no name here. Empty where the text says nothing.
[[nodiscard]] std::string processor_model(std::string_view cpuinfo);

/// The vector and matrix extensions among the processor's flags, in the kernel's words.
[[nodiscard]] std::vector<std::string> instruction_sets(std::string_view cpuinfo);

}  // namespace gpubench
