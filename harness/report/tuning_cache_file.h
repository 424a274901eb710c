// Choices made by timing in earlier runs, in user files: one per device, set of libraries and version of gpubench,
// which the fastest choice depends on.
//
// A file is only a hint. An unreadable or invalid one is reported once, ignored and replaced; the backend ignores
// implementations that are not offered. Files are replaced as a whole after merging the changes of other processes. Of
// two simultaneous writers one may lose its choices, which are then timed again.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/tuning_cache.h"

namespace gpubench {

/// What choices depend on besides the op call.
struct TuningSetting {
  DeviceInfo device;
  bool deterministic = false;
  std::string tool_version;  ///< gpubench's kernels are candidates, too
};

class TuningCacheFile final : public TuningCache {
 public:
  /// Reads the file for this setting in `folder`, if it exists. Creates and throws nothing: an invalid file is a
  /// complaint.
  TuningCacheFile(const std::string& folder, const TuningSetting& setting);

  [[nodiscard]] std::string recall(const std::string& key) const override;
  /// Writes new choices, and creates the folder if necessary. Gives up after a failure.
  void keep(const Choices& choices) override;
  [[nodiscard]] std::string take_complaint() override;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void save();

  std::string folder_;
  std::vector<std::pair<std::string, std::string>> setting_;
  std::string path_;
  Choices choices_;
  Choices own_;  ///< made in this process; not replaced by those of other processes
  std::string complaint_;
  bool writable_ = true;
};

/// `xdg_cache_home`/gpubench, else `home`/.cache/gpubench; a relative path does not count (XDG Base Directory
/// Specification). Empty if neither is set.
[[nodiscard]] std::string default_tuning_folder(std::string_view xdg_cache_home, std::string_view home);

}  // namespace gpubench
