// Descriptions of chips in chips/, for plans that are built but not run. They are written by hand; Cudnn().properties()
// on a device returns the true text.
#pragma once

#include <string>
#include <vector>

namespace gpubench::cuda {

/// "a100", "b200", "h200".
[[nodiscard]] const std::vector<std::string>& described_chips();
/// JSON text for Cudnn::for_chip().
[[nodiscard]] std::string chip_description(const std::string& chip);
/// Why plans cannot be finalized in this process; empty with the fake driver.
[[nodiscard]] std::string no_fake_driver();

}  // namespace gpubench::cuda
