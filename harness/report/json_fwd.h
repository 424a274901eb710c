// The name of the JSON document type, for headers: json.h has the type itself, which takes long to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace gpubench {

/// Keys stay in the order in which they were written, so that files read well.
using Json = nlohmann::ordered_json;

}  // namespace gpubench
