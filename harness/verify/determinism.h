// Measures determinism: whether a program gives the same bits again, and the first difference if not.
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

/// Fingerprints of parts of a value.
struct ValueBits {
  std::string tensor, op, kind, implementation;
  std::int64_t elements = 0;
  std::int64_t part_elements = 1;  ///< of each part except the last
  std::vector<std::uint64_t> parts;
};

/// Results of a case in the order of its ops, to compare processes, machines and libraries.
struct CaseBits {
  std::string id;
  std::uint64_t seed = 0;
  std::vector<ValueBits> values;
};

/// The first value that differs, with the part that differs, or "": "elements 512 to 1023 of 'h' of op 'block0.up'
/// (gemm); 3 of 12 tensors differ".
[[nodiscard]] std::string first_difference(const CaseBits& before, const CaseBits& now);

enum class Sameness { same, differs, untested };
template <>
inline constexpr auto enum_names<Sameness> = std::to_array<std::string_view>({"same", "differs", "untested"});

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

/// Whether the way must give the same bits. Always: replicas, and comparison with a saved file. With --deterministic:
/// run to run, op by op, stream and graph, and values that a rank computes before it communicates. Never: other
/// batches, other numbers of threads, sums over ranks in another order.
[[nodiscard]] bool is_promised(std::string_view way, bool deterministic);

struct Repetition {
  std::string way;  ///< in namespace way, or "1 thread"
  Sameness outcome = Sameness::untested;
  std::string text{};  ///< the first difference, or why it is untested
};

struct DeterminismRecord {
  std::string id;
  std::vector<Repetition> repetitions;
  CaseBits bits;
  std::string unsupported{};  ///< why the case did not run; empty if it ran
};

struct DeterminismEffort {
  int runs = 5;
  bool has_graphs = false;                             ///< the backend can replay a sequence as a graph
  std::function<void(const std::string& what)> now{};  ///< called with the next activity; may be empty
};

/// Measures cases on one backend, and on those of RunOptions::open_ranks, which it keeps.
class DeterminismProbe {
 public:
  /// `options`: seed, deterministic, and options of plans. All arguments must outlive it.
  DeterminismProbe(Backend& backend, const RunOptions& options, const DeterminismEffort& effort)
      : backend_(backend), options_(options), effort_(effort) {}

  /// Runs the timed program
  ///  - `runs` times as one launch from the same state and data;
  ///  - op by op;
  ///  - as a graph for a stream, as a stream for a graph;
  ///  - for one rank and a workload with a batch: with the first and the last item alone, whose activations must be as
  ///  in
  ///    the batch (batch invariance). Not compared: gradients, training steps, and values after an op that mixes items
  ///    by definition (normalization over the batch, dropout, routing to experts);
  ///  - for several ranks: comparing replicas; on one rank with each rank's data, comparing values from before
  ///    communication; and on one rank with all batches, comparing summed gradients (another order of sums).
  /// Reports the first element that differs, with its op, layer and rank.
  [[nodiscard]] DeterminismRecord measure(const PlannedCase& planned);

 private:
  [[nodiscard]] Backend& of_ranks(int ranks);

  Backend& backend_;
  const RunOptions& options_;
  const DeterminismEffort& effort_;
  std::map<int, std::unique_ptr<Backend>> several_;
};

}  // namespace gpubench
