// What root may load: code from a file that somebody else can change is theirs to run as root.
#pragma once

#include <filesystem>
#include <string>

namespace gpubench {

/// Why others than root could change what is at `path`: "/home/ann/.local belongs to user 1000". Looks at the file or
/// folder that it leads to and at all folders above: each belongs to root, and nobody else may write to it; into a
/// folder above with the sticky bit, as /tmp, everybody may. Empty where only root could.
[[nodiscard]] std::string changeable_by_others(const std::filesystem::path& path);

}  // namespace gpubench
