#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace gpubench {

/// `usual`, or the value of this environment variable: `ctest -C trials -L trials` sets the full counts.
inline int trial_count(const char* variable, int usual) {
  const char* wanted = std::getenv(variable);
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

/// Records to the log and the test's XML.
inline void tell_count(const std::string& what, int count) {
  std::cout << "[  COUNTED ] " << what << ": " << count << std::endl;
  std::string key = what;
  for (char& c : key) c = c == ' ' ? '_' : c;
  ::testing::Test::RecordProperty(key, count);
}

}  // namespace gpubench
