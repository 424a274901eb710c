// The cuDNN handle of a backend.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct cudnnContext;

namespace gpubench::cuda {

/// cuDNN, opened on the current device when it is first needed: cases without it should not wait for it.
class Cudnn {
 public:
  Cudnn();
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /// Throws BackendError with cuDNN's words where it does not start.
  [[nodiscard]] cudnnContext* handle() const;

 private:
  mutable cudnnContext* handle_ = nullptr;
};

/// "9.19.0"
[[nodiscard]] std::string cudnn_version();
/// The file that it was loaded from; empty where the loader does not tell.
[[nodiscard]] std::string cudnn_path();

}  // namespace gpubench::cuda
