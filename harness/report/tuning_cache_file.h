// Choices that earlier runs made by timing, in files of the user: one per device, set of libraries and version of
// gpubench, since on any other the fastest may be another.
//
// A file is a hint and nothing more. One that cannot be read, or says something else than it should, is complained of
// once, ignored and written anew; an implementation in it that is not offered is ignored by the backend. Files are
// replaced as a whole, after what other processes wrote meanwhile has been read: of two that write at the same moment
// one may lose what it found, which is then timed again.
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
  std::string tool_version;  ///< own kernels are candidates too, and change with it
};

class TuningCacheFile final : public TuningCache {
 public:
  /// Reads the file for this setting in `folder`, if it is there. Creates nothing and throws nothing: a file that
  /// cannot be taken is a complaint.
  TuningCacheFile(const std::string& folder, const TuningSetting& setting);

  [[nodiscard]] std::string recall(const std::string& key) const override;
  /// Writes the file where there is anything new, and makes the folder for it. After one failure nothing more is tried.
  void keep(const Choices& choices) override;
  [[nodiscard]] std::string take_complaint() override;

  /// "<folder>/nvidia-h200-0123456789abcdef.json"
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void save();

  std::string folder_;
  std::vector<std::pair<std::string, std::string>> setting_;
  std::string path_;
  Choices choices_;
  Choices own_;  ///< made in this process: what others wrote to the file does not replace them
  std::string complaint_;
  bool writable_ = true;
};

/// Where a user's choices are kept: `xdg_cache_home`/gpubench, else `home`/.cache/gpubench (XDG Base Directory
/// Specification: a relative path does not count); empty where neither is set.
[[nodiscard]] std::string default_tuning_folder(std::string_view xdg_cache_home, std::string_view home);

}  // namespace gpubench
