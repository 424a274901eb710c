// The key under which names are made anonymous: a user's own, in a file that nobody else can read.
//
// One key gives one machine one name in all reports, which comparing needs. Who has the key can find names by trying
// them; who has not cannot. A lost key means new names.
#pragma once

#include <string>
#include <string_view>

#include "harness/report/keyed_hash.h"

namespace gpubench {

/// $XDG_CONFIG_HOME/gpubench/anonymize.key, else ~/.config/gpubench/anonymize.key; "" where neither folder is known.
[[nodiscard]] std::string default_key_file(std::string_view xdg_config_home, std::string_view home);

/// The key in a file: 32 hexadecimal digits and a line's end. Where there is none, a new one is drawn and kept there
/// (0600). Throws ReadError for what is no key, and for a file that others than this user could read or have written;
/// WriteError where a new one cannot be kept.
[[nodiscard]] HashKey anonymize_key(const std::string& path);

}  // namespace gpubench
