// Whether text is well-formed XML, as far as our drawings use it: a check of the tests' own, which knows nothing of the
// writer. Elements, attributes in double quotes, text, the five named entities; no comment, no CDATA, no processing.
#pragma once

#include <string>
#include <string_view>

namespace gpubench {

/// "" where it is; else what is wrong and where.
std::string not_well_formed(std::string_view xml);

}  // namespace gpubench
