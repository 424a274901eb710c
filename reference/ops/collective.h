// Collectives: what several ranks do together. Definitions as in MPI 4.1, chapter 6, and in NCCL's user guide.
//
// The n ranks r = 0 ... n - 1 of a collective are the members of its group (OpCall::group), by their places in it; one
// list of tensors of each member makes up the inputs, in that order. A program that holds only some of the members has
// their tensors only. Tensors are dense, of any shape; "element i" is the i-th in row-major order. A message's bytes
// and its bytes on the wire are counted as nccl-tests does (doc/PERFORMANCE.md there), n ranks and S bytes:
//   op              S is the size of                    factor: wire bytes / S
//   all_reduce      what each rank has                  2 (n - 1) / n
//   all_gather      what each rank ends up with         (n - 1) / n
//   reduce_scatter  what each rank starts with          (n - 1) / n
//   broadcast       what the root has                   1
//   all_to_all      what each rank sends, at most       (n - 1) / n; uneven: what leaves or reaches a rank, at most
//   send_recv       what each rank sends                1
// Bus bandwidth is wire bytes over time: a figure to compare with a link's speed, whatever n is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/tensor.h"

namespace gpubench {

/// Whether ranks run the op together.
[[nodiscard]] bool is_collective(OpKind kind);
/// The number of ranks that take part. Throws ProgramError for another op.
[[nodiscard]] int ranks_of(const OpCall& call);

/// Throws ProgramError where the program lacks tensors of some members, so that its result cannot be worked out.
void expect_all_held(const OpCall& call);

/// Whether a collective combines values (sum, average, maximum) rather than only moving them.
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
  /// Whether all pairs of ranks have the same count.
  [[nodiscard]] bool is_even() const;
  /// Elements that rank `from` sends to rank `to`.
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
x: a block for each rank, one behind the other
y: a block of each rank, one behind the other

counts[q n + r] elements go from rank q to rank r (n = `ranks`); on both sides blocks are in the order of the other
side's ranks:
  y[r] = concatenation over q of the r-th block of x[q]

Source: MPI 4.1, chapter 6; NCCL user guide)"};

struct SendRecv {
  int ranks = 1;
  int shift = 1;
  int round = 0;  ///< from 1 on: ranks exchange in pairs, and there is no ring
  /// The member that gets what this one sends, and the one whose tensor it gets.
  [[nodiscard]] int receiver(int member) const;
  [[nodiscard]] int sender(int member) const;
  static void visit(auto&& attribute) {
    attribute("ranks", &SendRecv::ranks);
    attribute("shift", &SendRecv::shift);
    attribute("round", &SendRecv::round);
  }
};

/// Rounds after which each rank has met each other one once.
[[nodiscard]] constexpr int rounds_of_pairs(int ranks) { return ranks % 2 == 0 ? ranks - 1 : ranks; }
/// With whom each rank exchanges, of a program that is one send_recv in pairs and nothing else.
[[nodiscard]] std::optional<std::vector<int>> partners_of(const Program& program);

inline constexpr OpKind send_recv_kind{"send_recv", "x*", "y*", defaults_of<SendRecv>, R"(
Every rank sends to the one `shift` further, round the ring; or, with a `round`, to the one that sends to it.
x, y: any shape, alike on each rank

y[(q + shift) mod n] = x[q], n = `ranks`. In round k, from 1 on, ranks meet in pairs, as in a tournament in which each
meets each other once: q and r with q + r = k mod m, where m is n for odd n, else n - 1. Who would meet itself does so
for odd n, and else meets rank n - 1.

Source: NCCL user guide; the circle method of tournaments)"};

// Builders. `group`: the members, as many as the attributes say; empty: ranks 0, 1, ... `x`: one tensor of each member
// that the program holds, in the order of the group (all_reduce: one list of each, one after the other). Results are in
// the same order. A tensor that is spread over the members (Placement::spread) is no longer so where all of them have
// the same result. All throw ProgramError naming the tensor whose shape, type or rank does not fit.

/// `in_place`: the results are updates of x.
std::vector<ValueId> all_reduce(Program& program, const AllReduce& attributes, const Math& math, std::string label,
                                std::span<const ValueId> x, bool in_place = false, const RankGroup& group = {});
/// `shape`: of the results, which are flat without.
std::vector<ValueId> all_gather(Program& program, const AllGather& attributes, std::string label,
                                std::span<const ValueId> x, const RankGroup& group = {},
                                const std::optional<Shape>& shape = {});
/// `whole`: on each rank, room for all parts; its own part is filled in. The results are updates of `whole`.
std::vector<ValueId> all_gather_in_place(Program& program, const AllGather& attributes, std::string label,
                                         std::span<const ValueId> whole, const RankGroup& group = {});
/// `in_place`: the result of each rank is an update of its part of its x. Addends become shards of their sum. `shape`:
/// of results that are not in place, which are flat without.
std::vector<ValueId> reduce_scatter(Program& program, const ReduceScatter& attributes, const Math& math,
                                    std::string label, std::span<const ValueId> x, bool in_place = false,
                                    const RankGroup& group = {}, const std::optional<Shape>& shape = {});
/// `x` is on the root, which the program holds.
std::vector<ValueId> broadcast(Program& program, const Broadcast& attributes, std::string label, ValueId x,
                               const RankGroup& group = {});
/// `x`: the root's tensor, given where the program holds the root; `like`: its spec.
std::vector<ValueId> broadcast(Program& program, const Broadcast& attributes, std::string label,
                               std::optional<ValueId> x, const TensorSpec& like, const RankGroup& group);
std::vector<ValueId> all_to_all(Program& program, const AllToAll& attributes, std::string label,
                                std::span<const ValueId> x, const RankGroup& group = {});
std::vector<ValueId> send_recv(Program& program, const SendRecv& attributes, std::string label,
                               std::span<const ValueId> x, const RankGroup& group = {});

// A collective between ranks that can read each other's memory, as the copies and sums that each rank does once all
// inputs are ready: who does which part, not how. For backends; the textbook does not use it.

/// `bytes` bytes from one place to another.
struct CopyTask {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
};

/// The reduction of `count` elements of each source, rank by rank in order, written to each target: all ranks get the
/// same bits.
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

/// What each of the ranks does. Parts of one rank and another never overlap. `tensors`: those of the call's inputs,
/// then of its outputs, all dense. Throws ProgramError for an op that is no collective.
[[nodiscard]] std::vector<RankTasks> tasks_of(const OpCall& call, std::span<const Tensor> tensors);

}  // namespace gpubench
