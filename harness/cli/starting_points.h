// Sources that `gpubench impl new` begins from: those of reference/examples, and the header of the C interface, as the
// build put them into the program.
#pragma once

#include <string>

namespace gpubench {

/// The text of a file, "rms_norm_forward.c"; null where there is none of that name.
[[nodiscard]] const std::string* starting_point(const std::string& file);

}  // namespace gpubench
