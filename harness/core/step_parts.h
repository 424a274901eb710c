// A training step by kind of op or by layer, and its memory by purpose, from labels and roles alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/record.h"

namespace gpubench {

/// The layer of an op, the first part of its label: "block0" of "block0.qkv.da", of "grad.block0.ln1.y" (a sum of
/// gradients), of "block0.ln1+block0.qkv" (fused) and of "block0.qkv@1" (on rank 1); "loss" of "loss".
[[nodiscard]] std::string_view layer_of(std::string_view label);

/// The number of the layer of a label with more parts: 3 of "block3.qkv"; "ln1" has none.
[[nodiscard]] std::optional<int> block_of(std::string_view label);

/// " in layer block0" if the program's ops belong to several layers; else empty.
[[nodiscard]] std::string in_layer(const Program& program, const OpCall& op);

struct StepPart {
  std::string name;
  int ops = 0;
  double median_ns = 0.0;  ///< sum of the times of the ops alone
  double share = 0.0;      ///< of the step's time
  double flop = 0.0;
  double bytes = 0.0;
  std::string largest{};  ///< the op with the most time; if none was timed, with the most work
  double largest_ns = -1.0, largest_flop = -1.0;

  /// 0 if the ops were not timed.
  [[nodiscard]] double flop_per_s() const { return median_ns > 0.0 ? flop / (median_ns * 1e-9) : 0.0; }
};

[[nodiscard]] std::vector<StepPart> parts_by_kind(std::span<const OpShare> ops);   ///< the most time first, then work
[[nodiscard]] std::vector<StepPart> parts_by_layer(std::span<const OpShare> ops);  ///< in the order of the program

/// A rate over the peak of the step's arithmetic; for the step's rate this is model FLOP utilization (Chowdhery et al.,
/// "PaLM", arXiv 2204.02311, appendix B). None if no peak is known; PeakShare names its source.
[[nodiscard]] std::optional<double> utilization(const Derived& step, double flop_per_s);

/// The mode of steps that repeat some of their forward pass in the backward pass.
inline constexpr const char* recompute_mode = "recompute";
/// "MFU"; "HFU", hardware FLOP utilization, for a step with recomputation, which counts twice.
[[nodiscard]] std::string_view utilization_name(const Case& c);

/// Bytes of the storages of all ranks by purpose; empty kinds are left out:
///   weights            read by ops
///   master weights     sources of the weights in set-up ops
///   gradients          read by an op that updates a parameter
///   optimizer state    moments, and other data kept between steps
///   saved activations  outputs of the forward that the backward reads, with statistics
///   other activations, other gradients, inputs (with scalars)
[[nodiscard]] std::vector<MemoryPart> memory_by_kind(const Program& program);

}  // namespace gpubench
