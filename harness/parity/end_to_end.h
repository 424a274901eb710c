// End-to-end parity: a whole program against itself in fp64.
//
// Errors of a chain of ops add up beyond any per-op bound, so the allowance is measured. The textbook runs the program
// three times, with every output moved at random within its bound and rounded to its type. A real run passes if its
// error against fp64 is at most twice the largest of the three, tensor by tensor, in the 2-norm. Exceptions:
//
// - Few degrees of freedom: the distance of d numbers is k times smaller than usual with probability of about k^-d, all
//   three with k^-3d: one in a million at k = 10^(2/d). k is at most 10: of four uniform numbers one in 30,000 is more
//   than 20 times the largest of the others, 1 / (4 20^3). Degrees are counted twice, and the larger allowance holds:
//   by elements (few where some have nearly all of an error), and by the differences between the three runs (one where
//   all elements share a factor, as gradients clipped by their norm).
// - Updated weights: where a gradient is about zero, an optimizer's step has either sign (AdamW's first is the learning
//   rate times the sign). Nine elements may have taken the tensor's largest step in the other direction.
// - ReLU: its gradient jumps at x = 0. So each of the three runs puts one of the elements nearest to zero on the other
//   side, in every tensor that a ReLU reads.
// - Integers are decisions, and not compared. Those judged on written outputs (experts of a token, argmax of a window)
//   are copied from the real run, because another choice leads to another computation.
//
// The textbook runs everything four times: only for small programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {

/// Runs a whole program with the textbook, in separate host memory: slow and correct.
class TextbookMachine {
 public:
  using Choices = std::map<ValueId, std::vector<double>>;

  explicit TextbookMachine(const Program& program);

  /// Fills the sources as the harness does. `types`: the program to whose storage types values are rounded first. For a
  /// widened program this is the original, so that both have the same inputs.
  void fill_sources(std::string_view case_key, std::uint64_t seed, const Program& types);

  /// Writes a value, each number rounded to its type. `data` has its shape.
  void give(ValueId id, const TensorView& data);

  /// Runs all ops. With `disturb` each element of each output is moved. With kinks, a tensor that a ReLU reads gets one
  /// of its three nonzero elements nearest to zero moved to the other side: seed 1 the nearest, 2 the second, 3 the
  /// third, 4 the nearest again. `choices`: integers that an op chose in another run.
  void run(std::optional<Disturbance> disturb = {}, const Choices& choices = {});

  /// Runs the ops of one phase; calls `after`, which may be empty, with the index of each op after it.
  void run(Phase phase, std::optional<Disturbance> disturb, const Choices& choices,
           const std::function<void(int op)>& after = {});

  /// Runs one op; all ops before it must have run. Elements that a ReLU reads stay on their side of zero.
  void run_op(int index, std::optional<Disturbance> disturb = {}, const Choices& choices = {});

  [[nodiscard]] TensorView view(ValueId id) const;
  [[nodiscard]] std::byte* data(StorageId id) { return memory_[static_cast<std::size_t>(id.index)].data(); }

 private:
  void push_over_zero(ValueId id, std::uint64_t which);

  const Program& program_;
  std::vector<std::vector<std::byte>> memory_;
};

struct EndToEndResult {
  std::string tensor;
  Role role = Role::activation;
  double norm = 0.0;                                              ///< 2-norm of the fp64 result
  double error = 0.0;                                             ///< ||real - fp64||
  double allowed = 0.0;                                           ///< by the spread of the three disturbed runs
  [[nodiscard]] bool passed() const { return error <= allowed; }  // NaN fails
};

/// fp64 operations of one run of the program by the textbook, approximately.
[[nodiscard]] double textbook_flop(const Program& program);

/// A value that the run under test left in host memory; nothing where its memory was reused.
using LeftValues = std::function<std::optional<TensorView>(ValueId)>;

/// The integers of a run that its ops judge on written outputs.
[[nodiscard]] TextbookMachine::Choices choices_of(const Program& program, const LeftValues& run);

/// The four textbook runs that a real run from the same contents is compared with.
class CorrectRuns {
 public:
  /// Fills a machine of the program or of the widened one with the starting contents.
  using Start = std::function<void(TextbookMachine&)>;

  /// Runs the ops from phase `first` on, each machine on a separate thread. With Phase::timed, `start` also writes the
  /// results of set-up ops. `choices`: of the real run. `round` seeds the disturbance. Throws the exceptions of
  /// textbook ops. The program must outlive it.
  CorrectRuns(const Program& program, const Start& start, Phase first, TextbookMachine::Choices choices,
              std::uint64_t round = 0);
  CorrectRuns(const CorrectRuns&) = delete;
  CorrectRuns& operator=(const CorrectRuns&) = delete;
  ~CorrectRuns() = default;

  [[nodiscard]] TensorView exact(ValueId id) const { return exact_.view(id); }
  [[nodiscard]] const TextbookMachine::Choices& choices() const { return choices_; }
  [[nodiscard]] EndToEndResult compare(ValueId id, const TensorView& got) const;
  /// Compares every float value that the program leaves and `real` gives.
  [[nodiscard]] std::vector<EndToEndResult> compare(const LeftValues& real) const;

 private:
  [[nodiscard]] bool is_given(ValueId id) const;

  const Program& program_;
  Program wide_;
  Phase first_;
  TextbookMachine::Choices choices_;
  TextbookMachine exact_, before_;
  std::vector<TextbookMachine> disturbed_;
};

/// Compares every value still in memory after one run of the program from the fills of (case_key, seed).
[[nodiscard]] std::vector<EndToEndResult> end_to_end(const Program& program, std::string_view case_key,
                                                     std::uint64_t seed, const LeftValues& real);

}  // namespace gpubench
