// Runs a small program on the CPU backend for a test: canaries around and between tensors, outputs poisoned, values in
// fp64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/program.h"

namespace gpubench::testing {

/// Every byte that no tensor owns holds this before and must hold it after.
inline constexpr std::byte canary{0xA5};

class ProgramRun {
 public:
  /// Allocates all storages of the program; every byte is a canary until it is set.
  ProgramRun(Backend& backend, Program program);

  [[nodiscard]] const Program& program() const { return program_; }

  /// Values rounded to the tensor's type, in logical order.
  void set(ValueId id, std::span<const double> values);
  /// Bell-shaped numbers of about the given size from `seed`.
  void set_random(ValueId id, std::uint64_t seed, double scale = 1.0);
  [[nodiscard]] std::vector<double> get(ValueId id) const;
  [[nodiscard]] std::vector<std::byte> bytes_of(ValueId id) const;

  /// Every op is planned with this implementation.
  void pin(std::string implementation) { options_.pinned = std::move(implementation); }
  /// Plans and binds every op.
  void bind();
  /// Runs one op that bind() bound.
  void run_op(int op) { backend_.run(launch(op)); }
  /// Binds and runs every op in order.
  void run();
  /// Runs all that is bound once more.
  void run_again();
  [[nodiscard]] const std::string& implementation(int op) const {
    return implementations_.at(static_cast<std::size_t>(op));
  }
  [[nodiscard]] const Launch& launch(int op) const { return launches_.at(static_cast<std::size_t>(op)); }

  /// True while no byte outside the tensors (around storages, in the gaps of strided parts) and none of the workspace's
  /// surroundings has changed.
  [[nodiscard]] bool canaries_intact() const;

 private:
  [[nodiscard]] Tensor tensor_of(ValueId id) const;

  Backend& backend_;
  Program program_;
  std::set<ValueId> owners_;  // of bytes: what was set, and operands of ops that are bound
  std::vector<Buffer> storages_;
  std::vector<Buffer> workspaces_;
  PlanOptions options_;
  std::vector<Launch> launches_;
  std::vector<std::string> implementations_;
};

/// Whole numbers in [0, limit), the same each time: labels and tokens.
[[nodiscard]] std::vector<double> indices(std::int64_t count, std::int64_t limit, std::uint64_t seed);

/// The backend that the tests of a program share: all threads that this process may use.
[[nodiscard]] Backend& shared_backend();

/// What the backend says of the first op that it cannot plan, with this implementation; "" where it plans all.
[[nodiscard]] std::string refusal(Backend& backend, const Program& program, std::string pinned = {});

}  // namespace gpubench::testing
