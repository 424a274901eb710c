// Determinism as a measured property: whether a program leaves the same bits again, and what differs first where not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/enum_names.h"
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
template <>
inline constexpr auto enum_names<Sameness> = std::to_array<std::string_view>({"same", "differs", "untested"});

// Ways of running again.
namespace way {
inline constexpr std::string_view again = "again";
inline constexpr std::string_view op_by_op = "op by op";
inline constexpr std::string_view graph = "stream and graph";
inline constexpr std::string_view batch = "alone in its batch";
inline constexpr std::string_view replicas = "replicas";
inline constexpr std::string_view one_rank = "as on 1 rank";
inline constexpr std::string_view one_batch = "as 1 batch on 1 rank";
inline constexpr std::string_view before = "as before";
}  // namespace way

/// Whether the way must leave the same bits: with --deterministic run to run, op by op, as stream and graph, and what a
/// rank computes before it meets others; against a file that was saved, and replicas, always. Other batches, other
/// numbers of threads and sums over ranks in another order need not.
[[nodiscard]] bool is_promised(std::string_view way, bool deterministic);

/// One way of running again.
struct Repetition {
  std::string way;  ///< one of the above, or "1 thread"
  Sameness outcome = Sameness::untested;
  std::string text{};  ///< what differs first, or why it was not tried
};

struct DeterminismRecord {
  std::string id;
  std::vector<Repetition> repetitions;
  CaseBits bits;
  std::string unsupported{};  ///< why the case did not run; empty where it did
};

struct DeterminismEffort {
  int runs = 5;
  bool has_graphs = false;                             ///< of the backend: a sequence may be replayed as a graph
  std::function<void(const std::string& what)> now{};  ///< told what is done next; may be empty
};

/// Measures cases on one backend, and on those that RunOptions::open_ranks opens, which it keeps.
class DeterminismProbe {
 public:
  /// `options`: seed, deterministic, and what plans need. All must outlive it.
  DeterminismProbe(Backend& backend, const RunOptions& options, const DeterminismEffort& effort)
      : backend_(backend), options_(options), effort_(effort) {}

  /// Runs the timed program
  ///  - `runs` times as one launch from the same state and data: again;
  ///  - op by op: what a sequence, a stream or a graph adds must change no bit;
  ///  - as a graph where the case is a stream, as a stream where it is a graph;
  ///  - of a case of one rank whose workload has a batch, the first and the last item alone, with their data out of the
  ///    batch, which must leave the same activations as in it (batch invariance). Gradients, training steps, and what
  ///    follows from an op that mixes items by definition (normalization over the batch, dropout, routing to experts)
  ///    are not compared;
  ///  - of several ranks: replicas, which come from the same data by the same ops on several ranks; what each rank
  ///    computes before it meets others, by one rank alone on that rank's data; and gradients that were summed over the
  ///    ranks, by one rank that has the batches of all (another order of sums, which is a property).
  /// The first element that differs is named, with its op, layer and rank.
  [[nodiscard]] DeterminismRecord measure(const PlannedCase& planned);

 private:
  [[nodiscard]] Backend& of_ranks(int ranks);

  Backend& backend_;
  const RunOptions& options_;
  const DeterminismEffort& effort_;
  std::map<int, std::unique_ptr<Backend>> several_;
};

}  // namespace gpubench
