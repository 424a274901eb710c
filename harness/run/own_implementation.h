// An implementation under test: the user's kernels, called through the C interface (harness/core/implementation.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/backend.h"
#include "harness/core/implementation.h"

namespace gpubench {

struct NamedImplementation {
  std::string name, file;
  std::string interpreter{};  ///< runs a Python file in a worker
};

class OwnImplementation {
 public:
  /// Opens the shared library, whose code then runs in this process. Throws BackendError with the loader's or the
  /// library's message: no library, no gpubench_entry, another major version of the interface, or unusable here.
  OwnImplementation(std::string name, const std::string& file);
  /// `table` must outlive it. Throws as above.
  OwnImplementation(std::string name, const gpubench_implementation& table);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Untrusted text.
  [[nodiscard]] const std::string& version() const { return version_; }
  /// With null for functions that the library lacks.
  [[nodiscard]] const gpubench_implementation& table() const { return table_; }

 private:
  void take(const gpubench_implementation& table);

  std::string name_, version_;
  gpubench_implementation table_{};
};

/// Registers `table` for a Python file, whose functions the embedding interpreter has put into it. Call before
/// OwnImplementation opens the file; the table must outlive it.
void register_implementation(const std::string& file, const gpubench_implementation& table);

/// Why the implementation does not take the call; empty if it does. Throws BackendError if it fails.
[[nodiscard]] std::string declines(const OwnImplementation& implementation, const OpCall& call,
                                   std::span<const TensorSpec> tensors, const DeviceInfo& device,
                                   bool deterministic = false);

/// Runs the ops that the implementation takes in the implementation, with plans named "impl:<name>/<kernel>"; all
/// others, and collectives, on the inner backend. Both must outlive the result, unless `owner` holds the inner backend.
[[nodiscard]] std::unique_ptr<Backend> with_implementation(Backend& inner, const OwnImplementation& implementation,
                                                           std::unique_ptr<Backend> owner = nullptr);

inline constexpr std::string_view own_plan_prefix = "impl:";

}  // namespace gpubench
