// How often the tests that try again and again do so, and what they counted.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace gpubench {

/// `usual`, or what the environment says under this name: `ctest -C trials -L trials` sets the full counts.
inline int trial_count(const char* variable, int usual) {
  const char* wanted = std::getenv(variable);
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

/// Into the log, and into the test's XML as well.
inline void tell_count(const std::string& what, int count) {
  std::cout << "[  COUNTED ] " << what << ": " << count << std::endl;
  std::string key = what;
  for (char& c : key) c = c == ' ' ? '_' : c;
  ::testing::Test::RecordProperty(key, count);
}

}  // namespace gpubench
