// What the page carries with it: page.css and page.js, embedded when the program is built.
#pragma once

#include <string_view>

namespace gpubench::page {

[[nodiscard]] std::string_view style_sheet();
/// Holds no "</script".
[[nodiscard]] std::string_view script();
/// "sha256-...", over exactly the bytes of script(): what the content security policy allows.
[[nodiscard]] std::string_view script_hash();

}  // namespace gpubench::page
