// Runs a small program on the CPU backend: canaries around and between tensors, outputs poisoned, values in fp64.
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

/// Bytes outside tensors must keep this value.
inline constexpr std::byte canary{0xA5};

class ProgramRun {
 public:
  /// Allocates all storages of the program and fills them with canaries.
  ProgramRun(Backend& backend, Program program);

  [[nodiscard]] const Program& program() const { return program_; }

  /// Values are rounded to the tensor's type, in logical order.
  void set(ValueId id, std::span<const double> values);
  /// Bell-shaped random numbers of about this scale.
  void set_random(ValueId id, std::uint64_t seed, double scale = 1.0);
  [[nodiscard]] std::vector<double> get(ValueId id) const;
  [[nodiscard]] std::vector<std::byte> bytes_of(ValueId id) const;

  void pin(std::string implementation) { options_.pinned = std::move(implementation); }
  void bind();
  void run_op(int op) { backend_.run(launch(op)); }
  void run();
  void run_again();
  [[nodiscard]] const std::string& implementation(int op) const {
    return implementations_.at(static_cast<std::size_t>(op));
  }
  [[nodiscard]] const Launch& launch(int op) const { return launches_.at(static_cast<std::size_t>(op)); }

  /// Whether all bytes outside the tensors (around storages, in gaps of strided parts, around the workspace) are
  /// unchanged.
  [[nodiscard]] bool canaries_intact() const;

 private:
  [[nodiscard]] Tensor tensor_of(ValueId id) const;

  Backend& backend_;
  Program program_;
  std::set<ValueId> owners_;  // owners of bytes: values set, and operands of bound ops
  std::vector<Buffer> storages_;
  std::vector<Buffer> workspaces_;
  PlanOptions options_;
  std::vector<Launch> launches_;
  std::vector<std::string> implementations_;
};

/// Deterministic whole numbers in [0, limit), for labels and tokens.
[[nodiscard]] std::vector<double> indices(std::int64_t count, std::int64_t limit, std::uint64_t seed);

/// Shared by all tests of a program; uses all usable threads.
[[nodiscard]] Backend& shared_backend();

/// The backend's message for the first op that it cannot plan with this implementation; "" if it plans all.
[[nodiscard]] std::string refusal(Backend& backend, const Program& program, std::string pinned = {});

}  // namespace gpubench::testing
