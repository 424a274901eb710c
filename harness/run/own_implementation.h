// An implementation under test: somebody's own kernels, called through the C interface (harness/core/implementation.h)
// in place of the device's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/backend.h"
#include "harness/core/implementation.h"

namespace gpubench {

/// A file of --impl, and what records call it.
struct NamedImplementation {
  std::string name, file;
  std::string interpreter{};  ///< of a Python file: what runs it in a worker
};

class OwnImplementation {
 public:
  /// Opens the shared library: its code runs in this process from here on. `name`: what records call it. Throws
  /// BackendError with the loader's or the library's words: no library, no gpubench_entry, another major version of
  /// the interface, or it cannot work here.
  OwnImplementation(std::string name, const std::string& file);
  /// Of a table in this process, which must outlive it. Throws as above.
  OwnImplementation(std::string name, const gpubench_implementation& table);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// As the library gives it; untrusted text.
  [[nodiscard]] const std::string& version() const { return version_; }
  /// With null for functions that the library does not have.
  [[nodiscard]] const gpubench_implementation& table() const { return table_; }

 private:
  void take(const gpubench_implementation& table);

  std::string name_, version_;
  gpubench_implementation table_{};
};

/// A file that this process stands in for: a Python file whose functions the interpreter around this process has made
/// into a table. Call before OwnImplementation opens it; both must outlive it.
void register_implementation(const std::string& file, const gpubench_implementation& table);

/// What the implementation says to a call: empty where it takes it, else why not. Throws BackendError where it fails.
[[nodiscard]] std::string declines(const OwnImplementation& implementation, const OpCall& call,
                                   std::span<const TensorSpec> tensors, const DeviceInfo& device,
                                   bool deterministic = false);

/// The inner backend with the ops that the implementation takes replaced by its own; all others, and collectives, run
/// on the inner backend. Its plans are called "impl:<name>/<kernel>". Both must outlive the backend, unless `owner`
/// holds the inner one.
[[nodiscard]] std::unique_ptr<Backend> with_implementation(Backend& inner, const OwnImplementation& implementation,
                                                           std::unique_ptr<Backend> owner = nullptr);

/// How the names of its plans begin.
inline constexpr std::string_view own_plan_prefix = "impl:";

}  // namespace gpubench
