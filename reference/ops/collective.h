// Collectives, defined as in MPI 4.1, chapter 6, and NCCL's user guide.
//
// The n ranks r = 0 ... n - 1 are the members of the call's group (OpCall::group), by their places in it. The inputs
// are one list of tensors per member, in that order, without those of members that the program does not hold. Tensors
// are dense, of any shape; "element i" is the i-th in row-major order. Message and wire bytes are counted as in
// nccl-tests (doc/PERFORMANCE.md). Bus bandwidth, wire bytes over time, compares with a link's speed. For n ranks and S
// bytes:
//   op              S: bytes that                          wire bytes / S
//   all_reduce      each rank has                          2 (n - 1) / n
//   all_gather      each rank ends up with                 (n - 1) / n
//   reduce_scatter  each rank starts with                  (n - 1) / n
//   broadcast       the root has                           1
//   all_to_all      each rank sends (uneven: the most      (n - 1) / n (uneven: the most that leaves or
//                   that a rank sends)                     reaches a rank)
//   send_recv       each rank sends                        1
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/tensor.h"

namespace gpubench {

[[nodiscard]] bool is_collective(OpKind kind);
/// The number of members. Throws ProgramError for other ops.
[[nodiscard]] int ranks_of(const OpCall& call);

/// Throws ProgramError if the program lacks tensors of some members, so that the result cannot be computed.
void expect_all_held(const OpCall& call);

[[nodiscard]] bool reduces(OpKind kind);

enum class Reduction { sum, average, maximum };
template <>
inline constexpr auto enum_names<Reduction> = std::to_array<std::string_view>({"sum", "avg", "max"});

struct AllReduce {
  int ranks = 1;
  Reduction reduction = Reduction::sum;
  static void visit(auto&& attribute) {
    attribute("ranks", &AllReduce::ranks);
    attribute("reduction", &AllReduce::reduction);
  }
};

inline constexpr OpKind all_reduce_kind{"all_reduce", "x*", "y*", defaults_of<AllReduce>, R"(
The sum, average or maximum over all ranks, on every rank.
x: one or several tensors of each rank, of any shape
y: as x; may be updates

y[r][i] = reduction over all ranks q of x[q][i], on every rank r of the `ranks`; all hold the same bits. A maximum
with a NaN is NaN. Several tensors at once: inputs are x of rank 0 (k tensors), of rank 1, ...; outputs likewise.

Source: MPI 4.1, chapter 6; NCCL user guide)"};

struct AllGather {
  int ranks = 1;
  static void visit(auto&& attribute) { attribute("ranks", &AllGather::ranks); }
};

inline constexpr OpKind all_gather_kind{"all_gather", "x*", "y*", defaults_of<AllGather>, R"(
Every rank gets the parts of all.
x: m elements on each rank
y: n m elements on each rank

y[r][q m + i] = x[q][i] for the n = `ranks` ranks q

Source: MPI 4.1, chapter 6; NCCL user guide)"};

struct ReduceScatter {
  int ranks = 1;
  Reduction reduction = Reduction::sum;
  static void visit(auto&& attribute) {
    attribute("ranks", &ReduceScatter::ranks);
    attribute("reduction", &ReduceScatter::reduction);
  }
};

inline constexpr OpKind reduce_scatter_kind{"reduce_scatter", "x*", "y*", defaults_of<ReduceScatter>, R"(
The sum, average or maximum over all ranks, of which each rank gets a part.
x: n m elements on each rank
y: m elements on each rank

y[r][i] = reduction over all n = `ranks` ranks q of x[q][r m + i]

Source: MPI 4.1, chapter 6; NCCL user guide)"};

struct Broadcast {
  int ranks = 1;
  int root = 0;
  static void visit(auto&& attribute) {
    attribute("ranks", &Broadcast::ranks);
    attribute("root", &Broadcast::root);
  }
};

inline constexpr OpKind broadcast_kind{"broadcast", "x*", "y*", defaults_of<Broadcast>, R"(
Every rank gets the root's tensor.
x: on the root only
y: as x, on each rank

y[r][i] = x[i] for each of the `ranks`; x is rank `root`'s.

Source: MPI 4.1, chapter 6; NCCL user guide)"};

struct AllToAll {
  int ranks = 1;
  std::vector<std::int64_t> counts;
  [[nodiscard]] bool is_even() const;
  [[nodiscard]] std::int64_t count(int from, int to) const {
    return counts[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(to)];
  }
  static void visit(auto&& attribute) {
    attribute("ranks", &AllToAll::ranks);
    attribute.when([](const AllToAll& a) { return !a.is_even(); }, "counts", &AllToAll::counts);
  }
};

inline constexpr OpKind all_to_all_kind{"all_to_all", "x*", "y*", defaults_of<AllToAll>, R"(
Every rank sends a block to every other.
x: a block for each rank, contiguous
y: a block from each rank, contiguous

counts[q n + r] elements go from rank q to rank r (n = `ranks`). Blocks are ordered by the other side's rank:
  y[r] = concatenation over q of the r-th block of x[q]

Source: MPI 4.1, chapter 6; NCCL user guide)"};

struct SendRecv {
  int ranks = 1;
  int shift = 1;
  int round = 0;  ///< from 1: ranks exchange in pairs, without a ring
  /// The members that `member` sends to, and receives from.
  [[nodiscard]] int receiver(int member) const;
  [[nodiscard]] int sender(int member) const;
  static void visit(auto&& attribute) {
    attribute("ranks", &SendRecv::ranks);
    attribute("shift", &SendRecv::shift);
    attribute("round", &SendRecv::round);
  }
};

/// Rounds after which each rank has met every other once.
[[nodiscard]] constexpr int rounds_of_pairs(int ranks) { return ranks % 2 == 0 ? ranks - 1 : ranks; }
/// By rank: its partner, if the program is a single pairwise send_recv.
[[nodiscard]] std::optional<std::vector<int>> partners_of(const Program& program);

inline constexpr OpKind send_recv_kind{"send_recv", "x*", "y*", defaults_of<SendRecv>, R"(
Every rank sends to the one `shift` further, round the ring; or, with a `round`, to the one that sends to it.
x, y: any shape, alike on each rank

y[(q + shift) mod n] = x[q], n = `ranks`. In round k >= 1, ranks exchange in pairs, as in a round-robin tournament:
q and r with q + r = k mod m, where m is n for odd n, else n - 1. A rank that is its own partner keeps its tensor for
odd n, and exchanges with rank n - 1 for even n.

Source: NCCL user guide; the circle method of tournaments)"};

// Builders. `group`: the members; empty: ranks 0, 1, ... `x`: one tensor per member that the program holds, in the
// group's order (all_reduce: one list per member, concatenated). Results are in the same order. A tensor spread over
// the members (Placement::spread) is no longer so once all have the same result. All throw ProgramError naming the
// tensor whose shape, type or rank does not fit.

/// `in_place`: the results are updates of x.
std::vector<ValueId> all_reduce(Program& program, const AllReduce& attributes, const Math& math, std::string label,
                                std::span<const ValueId> x, bool in_place = false, const RankGroup& group = {});
/// `shape`: of the results; default: flat.
std::vector<ValueId> all_gather(Program& program, const AllGather& attributes, std::string label,
                                std::span<const ValueId> x, const RankGroup& group = {},
                                const std::optional<Shape>& shape = {});
/// `whole`: each rank's buffer for all parts, with its own part filled in. The results are updates of `whole`.
std::vector<ValueId> all_gather_in_place(Program& program, const AllGather& attributes, std::string label,
                                         std::span<const ValueId> whole, const RankGroup& group = {});
/// `in_place`: each result updates its rank's part of x. Addends become shards of their sum. `shape`: of results that
/// are not in place; default: flat.
std::vector<ValueId> reduce_scatter(Program& program, const ReduceScatter& attributes, const Math& math,
                                    std::string label, std::span<const ValueId> x, bool in_place = false,
                                    const RankGroup& group = {}, const std::optional<Shape>& shape = {});
/// `x` is on the root, which the program must hold.
std::vector<ValueId> broadcast(Program& program, const Broadcast& attributes, std::string label, ValueId x,
                               const RankGroup& group = {});
/// `x`: the root's tensor, if the program holds the root; `like`: its spec.
std::vector<ValueId> broadcast(Program& program, const Broadcast& attributes, std::string label,
                               std::optional<ValueId> x, const TensorSpec& like, const RankGroup& group);
std::vector<ValueId> all_to_all(Program& program, const AllToAll& attributes, std::string label,
                                std::span<const ValueId> x, const RankGroup& group = {});
std::vector<ValueId> send_recv(Program& program, const SendRecv& attributes, std::string label,
                               std::span<const ValueId> x, const RankGroup& group = {});

// A collective between ranks that share memory, as the copies and sums of each rank once all inputs are ready.
// For backends; the textbook does not use it.

struct CopyTask {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
};

/// Reduces `count` elements of each source, in rank order, and writes the same bits to each target.
struct ReduceTask {
  DType type = DType::f32;
  Reduction reduction = Reduction::sum;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  std::int64_t count = 0;
};

struct RankTasks {
  std::vector<CopyTask> copies;
  std::vector<ReduceTask> reductions;
};

/// Each rank's tasks, which write disjoint memory. `tensors`: the call's inputs, then its outputs, all dense. Throws
/// ProgramError for an op that is not a collective.
[[nodiscard]] std::vector<RankTasks> tasks_of(const OpCall& call, std::span<const Tensor> tensors);

}  // namespace gpubench
