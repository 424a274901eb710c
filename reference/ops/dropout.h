// Dropout with a mask that is the same on every backend. Srivastava et al., JMLR 15, 2014; Philox: Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

struct Dropout {
  double p = 0.1;
  static void visit(auto&& attribute) { attribute("p", &Dropout::p); }
};

inline constexpr OpKind dropout_kind{"dropout", "x seed offset", "y", defaults_of<Dropout>, R"(
Sets elements to 0 with probability p, by a mask that every backend draws alike.
x, y: any shape
seed, offset: i32 [2], two words each; a seed for the run, an offset for the step and the layer

y = x / (1 - p), or 0: element i, row-major, where word i % 4 of Philox4x32-10 with counter
(i / 4 mod 2^32, i / 4 / 2^32, offset[0], offset[1]) and key (seed[0], seed[1]) is below p 2^32, rounded down.
The gradient is the same op on dy, which draws the mask again instead of storing it. This saves 1 byte per element of
writing, reading and memory; x and y take 4 in bf16.

Source: Srivastava et al., JMLR 15, 2014; Philox: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
2011)"};

struct MaskSource {
  ValueId seed, offset;
};

/// `into`: reserved for y. Throws ProgramError unless 0 <= p < 1, and naming a tensor that does not fit.
ValueId dropout(Program& program, const Dropout& attributes, const Math& math, std::string label, ValueId x,
                const MaskSource& source, const std::optional<ValueId>& into = {});

/// Names of the mask offsets of a step that `transform` is about to give several ranks or micro-batches. Each counts
/// elements from 0, so equal offsets would repeat a mask: throws ProgramError unless offsets are part of the batch
/// (sources placed as shards, not constants).
[[nodiscard]] std::set<std::string, std::less<>> mask_offsets(const Program& step, std::string_view transform);

}  // namespace gpubench
