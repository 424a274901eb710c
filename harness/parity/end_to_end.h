// End-to-end parity: a whole program against itself in fp64.
//
// Errors of a chain of ops add up in ways that no per-op bound predicts, so the allowance is measured: the program is
// run by the textbook three times with every op's output moved at random within its own bound and rounded to its
// storage type, as three correct backends would. A real run passes when its error against fp64 is at most twice the
// worst of the three, tensor by tensor, in the 2-norm. Tensors of few elements are allowed more: the distance of n
// numbers is k times smaller than usual with a probability of about k^-n, and that of all three k^-3n, which is one in
// a million at k = 10^(2/n). And where a gradient is about zero, an optimizer's step goes one way or the other (AdamW's
// first is the sign of the gradient times the learning rate): in an output that updates a source, nine elements may
// have taken the tensor's largest step in the other direction. ReLU's gradient jumps where x is zero, by as much as
// flows in, and an x so near to it that rounding decides its sign is rare: one run in ten may have one. So each of the
// three has, in every tensor that a ReLU reads, one of the elements nearest to zero on the other side of it. Integers
// are decisions, such as which element of a window is its largest: what is compared is what follows from them. Those
// that are judged on what was written (the experts of a token) are taken from the real run: by another choice between
// two that are as good, all that follows would be another computation.
// Only for small programs: the textbook runs everything four times.
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

  /// Runs all ops. With `disturb`, from 1 on, each element of each output is first moved by a random fraction of its
  /// bound, as a correct but imperfect backend would; the random numbers come from that seed. And what a ReLU reads has
  /// its element that is the `disturb`-nearest to zero, not zero, on the other side of it. `choices`: integers that an
  /// op chose in another run, and judges on what was written.
  void run(std::optional<std::uint64_t> disturb = {}, const Choices& choices = {});

  /// Runs one op of the program, which must have run up to it; see run().
  void run_op(int index, std::optional<std::uint64_t> disturb = {}, const Choices& choices = {});

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

/// Compares every value that is still in memory after the program has run once from the fills of (case_key, seed).
/// `real`: gives the host view of a value as the run under test left it; nothing where its memory was reused.
[[nodiscard]] std::vector<EndToEndResult> end_to_end(const Program& program, std::string_view case_key,
                                                     std::uint64_t seed,
                                                     const std::function<std::optional<TensorView>(ValueId)>& real);

}  // namespace gpubench
