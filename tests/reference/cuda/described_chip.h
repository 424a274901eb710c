// Chips that are not there: descriptions in chips/, for plans that are built and never run. They are written by hand;
// Cudnn().properties() on the real device gives the true text, which may take their place.
#pragma once

#include <string>
#include <vector>

namespace gpubench::cuda {

/// "a100", "b200", "h200".
[[nodiscard]] const std::vector<std::string>& described_chips();
/// The JSON text of one, as Cudnn::for_chip() takes it.
[[nodiscard]] std::string chip_description(const std::string& chip);
/// Why plans cannot be finalized in this process; empty where the driver is the fake one.
[[nodiscard]] std::string no_fake_driver();

}  // namespace gpubench::cuda
