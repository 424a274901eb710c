// Determinism as a measured property: whether a program leaves the same bits again, and what differs first where not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace gpubench {

/// Fingerprints of one value that a program left, in parts: equal elements in a part have equal ones.
struct ValueBits {
  std::string tensor, op, kind, implementation;
  std::int64_t elements = 0;
  std::int64_t part_elements = 1;  ///< of each part but the last
  std::vector<std::uint64_t> parts;
};

/// What a case left, in the order of its ops: results of other processes, machines and libraries are compared by these.
struct CaseBits {
  std::string id;
  std::uint64_t seed = 0;
  std::vector<ValueBits> values;
};

/// The first value that differs, with the elements among which it does: "elements 512 to 1023 of 'h' of op 'block0.up'
/// (gemm); 3 of 12 tensors differ"; empty where all are the same.
[[nodiscard]] std::string first_difference(const CaseBits& before, const CaseBits& now);

enum class Sameness { same, differs, untested };

/// One way of running again.
struct Repetition {
  std::string way;  ///< "again", "op by op", "alone in its batch", "1 thread"
  Sameness outcome = Sameness::untested;
  std::string text;  ///< what differs first, or why it was not tried
};

struct DeterminismRecord {
  std::string id;
  std::vector<Repetition> repetitions;
  CaseBits bits;
  std::string unsupported{};  ///< why the case did not run; empty where it did
};

/// Runs the timed program of a case of one rank
///  - `runs` times as one launch from the same state and data: again;
///  - op by op: what a sequence, a stream or a graph adds must change no bit;
///  - where its workload has a batch: the first and the last item alone, with their data out of the batch, which must
///    leave the same activations as in it (batch invariance). Gradients,
///    training steps, and what follows from an op that mixes items by definition (normalization over the batch,
///    dropout, routing to experts) are not compared.
/// The first element that differs is named, with its op. `options`: seed, deterministic, and what plans need.
[[nodiscard]] DeterminismRecord measure_determinism(Backend& backend, const PlannedCase& planned,
                                                    const RunOptions& options, int runs);

}  // namespace gpubench
