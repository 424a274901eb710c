// Execution plans as cuDNN's own JSON text, so that what it took seconds to compile is compiled once in a process: for
// the other ranks on the same chip, each of which needs a plan of its own (cuDNN does not promise that plans may be
// shared between threads).
//
// cuDNN has the text for engines whose code it compiles at run time, which are those that take so long; of the others
// nothing is stored.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace gpubench::cuda {

class CudnnPlanStore {
 public:
  /// The text that was kept under `key`, if any.
  [[nodiscard]] std::optional<std::string> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = texts_.find(key);
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }
  /// The first text of a key stays.
  void keep(const std::string& key, std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.emplace(key, std::move(text));
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

}  // namespace gpubench::cuda
