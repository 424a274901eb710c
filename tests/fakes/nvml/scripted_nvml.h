// Loads one of the fake management libraries and lets a test write its script.
#pragma once

#include <string>

#include "tests/fakes/nvml/fake_nvml.h"

namespace gpubench {

class ScriptedNvml {
 public:
  /// `kind`: "today", "old", "foreign". The script starts as new.
  explicit ScriptedNvml(const std::string& kind = "today");
  [[nodiscard]] const std::string& path() const { return path_; }
  FakeNvml* operator->() { return script_; }
  FakeGpu& gpu() { return script_->gpus.at(0); }

 private:
  std::string path_;
  FakeNvml* script_ = nullptr;
};

}  // namespace gpubench
