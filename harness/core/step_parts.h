// What a training step is made of: its time, work and bytes by kind of op or by layer, its memory by what it is for.
// Worked out from labels and roles alone, so that every model is told in the same words.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/record.h"

namespace gpubench {

/// The layer that an op belongs to, the first part of its label: "block0" of "block0.qkv.da", of "grad.block0.ln1.y"
/// (a sum of gradients), of "block0.ln1+block0.qkv" (fused) and of "block0.qkv@1" (on rank 1); "loss" of "loss".
[[nodiscard]] std::string_view layer_of(std::string_view label);

/// The number of a layer that has one, of an op whose label has more parts: 3 of "block3.qkv"; "ln1" has none.
[[nodiscard]] std::optional<int> block_of(std::string_view label);

/// " in layer block0" where the program's ops belong to several layers; else empty.
[[nodiscard]] std::string in_layer(const Program& program, const OpCall& op);

/// Ops of a step together.
struct StepPart {
  std::string name;
  int ops = 0;
  double median_ns = 0.0;  ///< sum of the ops' times alone
  double share = 0.0;      ///< of the step's time
  double flop = 0.0;
  double bytes = 0.0;
  std::string largest{};  ///< the op that takes the most time; where none was timed, the one with the most work
  double largest_ns = -1.0, largest_flop = -1.0;

  /// Of the ops alone; 0 where they were not timed.
  [[nodiscard]] double flop_per_s() const { return median_ns > 0.0 ? flop / (median_ns * 1e-9) : 0.0; }
};

[[nodiscard]] std::vector<StepPart> parts_by_kind(std::span<const OpShare> ops);   ///< the most time first, then work
[[nodiscard]] std::vector<StepPart> parts_by_layer(std::span<const OpShare> ops);  ///< in the order of the program

/// A rate as a share of the peak of the step's arithmetic; of the step's own rate, that is model FLOP utilization
/// (Chowdhery et al., "PaLM", arXiv 2204.02311, appendix B). None where no peak is known; PeakShare names its source.
[[nodiscard]] std::optional<double> utilization(const Derived& step, double flop_per_s);

/// The mode of steps that run some of their forward again in the backward.
inline constexpr const char* recompute_mode = "recompute";
/// "MFU"; "HFU", hardware FLOP utilization, of a step that does part of its work twice, which counts twice.
[[nodiscard]] std::string_view utilization_name(const Case& c);

/// Bytes of a program's storages, of all its ranks, by what they are for; kinds without any are left out:
///   weights            that ops read
///   master weights     of which set-up ops made the weights
///   gradients          that an op reads which updates a parameter
///   optimizer state    moments, and whatever else steps leave to steps
///   saved activations  that the backward reads: outputs of the forward, statistics among them
///   other activations, other gradients, inputs (scalars among them)
[[nodiscard]] std::vector<MemoryPart> memory_by_kind(const Program& program);

}  // namespace gpubench
