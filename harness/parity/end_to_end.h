// End-to-end parity: a whole program against itself in fp64.
//
// Errors of a chain of ops add up in ways that no per-op bound predicts, so the allowance is measured: the program is
// run by the textbook three times with every op's output moved at random within its own bound and rounded to its
// storage type, as three correct backends would. A real run passes when its error against fp64 is at most twice the
// worst of the three, tensor by tensor, in the 2-norm. Tensors of few degrees of freedom are allowed more: the distance
// of d numbers is k times smaller than usual with a probability of about k^-d, and that of all three k^-3d, which is
// one in a million at k = 10^(2/d). It is 10 at most: of four uniform numbers one in 30,000 is more than 20 times the
// largest of the others, 1 / (4 20^3). Degrees are counted twice. By elements: few where some have nearly all of an
// error (of a second moment, which has squares). And, of what the three have not in common, by how they differ: one
// where all elements have a factor, as gradients that are clipped by their norm; few where the rows of a batch are few.
// Where a gradient is about zero, an optimizer's step goes one way or the other (AdamW's first is the sign of the
// gradient times the learning rate): in a weight that is updated, nine elements may have taken the tensor's largest
// step in the other direction. ReLU's gradient jumps where x is zero, by as much as flows in, and an x so near to it
// that rounding decides its sign is rare: one run in ten may have one. So each of the three has, in every tensor that a
// ReLU reads, one of the elements nearest to zero on the other side of it. Integers are decisions: what is
// compared is what follows from them. Those that are judged on what was written (the experts of a token, which element
// of a window is its largest) are taken from the real run: by another choice between two that are as good, all that
// follows would be another computation. Only for small programs: the textbook runs everything four times.
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

/// Runs a whole program with the textbook, in host memory of its own: slow and correct. For end-to-end parity and
/// tests.
class TextbookMachine {
 public:
  using Choices = std::map<ValueId, std::vector<double>>;

  explicit TextbookMachine(const Program& program);

  /// Fills the sources as the harness does. `types`: the program whose storage types the values are first rounded to;
  /// for a widened program the original one, so that both see the same inputs.
  void fill_sources(std::string_view case_key, std::uint64_t seed, const Program& types);

  /// Writes a value, each number rounded to its type. `data` has its shape.
  void give(ValueId id, const TensorView& data);

  /// Runs all ops. With `disturb` each element of each output is moved. With kinks, what a ReLU reads has one of its
  /// three elements nearest to zero, not zero, on the other side of it: with a seed of 1 the nearest, then the second,
  /// the third, the nearest again. `choices`: integers that an op chose in another run, and judges on what was written.
  void run(std::optional<Disturbance> disturb = {}, const Choices& choices = {});

  /// The same for the ops of one phase. `after` is called with the index of each op that has run; may be empty.
  void run(Phase phase, std::optional<Disturbance> disturb, const Choices& choices,
           const std::function<void(int op)>& after = {});

  /// Runs one op of the program, which must have run up to it; see run(). What a ReLU reads stays on its side of zero.
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
  double norm = 0.0;                                              ///< of the fp64 result
  double error = 0.0;                                             ///< ||real - fp64||
  double allowed = 0.0;                                           ///< by the spread of the three disturbed runs
  [[nodiscard]] bool passed() const { return error <= allowed; }  // NaN fails
};

/// About how many fp64 operations the textbook takes to run the program once.
[[nodiscard]] double textbook_flop(const Program& program);

/// A value as the run under test left it, in the host's memory; nothing where its memory was reused.
using LeftValues = std::function<std::optional<TensorView>(ValueId)>;

/// What a run chose: the integers that its ops judge on what was written.
[[nodiscard]] TextbookMachine::Choices choices_of(const Program& program, const LeftValues& run);

/// The four runs of a program by the textbook that a real run from the same contents is compared with.
class CorrectRuns {
 public:
  /// Puts what the ops read into a machine of the program or of the widened one: what a run starts from.
  using Start = std::function<void(TextbookMachine&)>;

  /// Runs the ops from phase `first` on, each machine on a thread of its own. With Phase::timed, `start` puts there
  /// what set-up ops have made, too. `choices`: of the real run. `round`: runs of different rounds are disturbed
  /// differently. Throws what an op of the textbook throws. The program must outlive it.
  CorrectRuns(const Program& program, const Start& start, Phase first, TextbookMachine::Choices choices,
              std::uint64_t round = 0);
  CorrectRuns(const CorrectRuns&) = delete;
  CorrectRuns& operator=(const CorrectRuns&) = delete;
  ~CorrectRuns() = default;

  /// A value in fp64.
  [[nodiscard]] TensorView exact(ValueId id) const { return exact_.view(id); }
  [[nodiscard]] const TextbookMachine::Choices& choices() const { return choices_; }
  /// One value of the real run, `got`.
  [[nodiscard]] EndToEndResult compare(ValueId id, const TensorView& got) const;
  /// Every float value of the real run that the program leaves and `real` gives.
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

/// Compares every value that is still in memory after the program has run once from the fills of (case_key, seed).
[[nodiscard]] std::vector<EndToEndResult> end_to_end(const Program& program, std::string_view case_key,
                                                     std::uint64_t seed, const LeftValues& real);

}  // namespace gpubench
