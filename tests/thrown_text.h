#pragma once

#include <string>

namespace gpubench {

/// The text of the Error that work() throws; `otherwise`: none thrown.
template <class Error>
std::string thrown_text(const auto& work, const char* otherwise = "") {
  try {
    (void)work();
  } catch (const Error& error) {
    return error.what();
  }
  return otherwise;
}

}  // namespace gpubench
