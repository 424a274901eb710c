// Training step by step, whoever runs it, against the same training in fp64.
//
// A loss curve shows little: with Adam, a gradient that is a thousand times too large leaves the same curve. So each
// step is judged alone ("teacher-forced"): it starts from the state that training in fp64 has arrived at, rounded once
// to the types of the recipe (masters f32, the weights in use copies of them in bf16, ...), and the loss, every
// gradient that is left and every updated weight and moment are compared with the same step in fp64 from the same
// numbers, by the rule of end_to_end.h. Nothing that one step does wrong reaches the next.
//
// The reference is the model's step in f32, widened to fp64; all recipes of a model have it in common. Its state stays
// in fp64 from step to step and is never rounded. It begins as training does: moments of zero, the first step being 1;
// weights are what the harness fills them with. Tokens, images and labels are random, so that nothing is to be learned
// but which label belongs to what: a few batches come in turn, over and over, and the loss on them falls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "harness/parity/end_to_end.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {

/// The losses that a program computes, one for each micro-batch; empty: it has none.
[[nodiscard]] std::vector<ValueId> losses_of(const Program& program);
/// Whether the program trains: it has a loss, and an optimizer that updates weights by a learning rate.
[[nodiscard]] bool is_training_step(const Program& program);
/// What a step of training is judged by, of the values that the program leaves: losses, gradients and their norm, and
/// updates of what it started from. Not activations and statistics, which the check of single ops sees; nor 8-bit
/// copies and their scales: which power of two a scale is, is a decision.
[[nodiscard]] bool shows_training(const Program& program, ValueId id);

/// Contents of sources.
using SourceValues = std::map<ValueId, HostTensor>;

/// Training in fp64.
class ReferenceTraining {
 public:
  /// Runs so many steps; the states before the first `kept` of them stay. `step`: the training step of the model in
  /// f32. `alive` is called before each. Throws ProgramError where it is none.
  ReferenceTraining(
      const Program& step, std::uint64_t seed, int batches, int steps, int kept,
      const std::function<void()>& alive = [] {});

  [[nodiscard]] int kept() const { return static_cast<int>(states_.size()); }
  /// Before each step's update, on the batch of that step.
  [[nodiscard]] const std::vector<double>& losses() const { return losses_; }

  /// What all sources of a recipe's program hold before a step (from 0, less than kept()), rounded to their types: the
  /// sources of the same names, those of masters without ".master". What only that recipe has, as the scale of a loss,
  /// is filled as always.
  [[nodiscard]] SourceValues sources(const Program& recipe, int step) const;
  /// Of these, those that differ from step to step whatever was trained: the batch and the step's number. For any step.
  [[nodiscard]] SourceValues data(const Program& recipe, int step) const;

 private:
  using Contents = std::map<std::string, std::vector<double>>;  // by name

  [[nodiscard]] Contents data(int step) const;

  Program step_;
  std::uint64_t seed_;
  int batches_;
  std::vector<std::string> numbers_;  // sources that hold the number of the step
  Contents constants_;
  std::vector<Contents> states_;
  std::vector<double> losses_;
};

/// Somebody who runs the steps of a program.
class Trainee {
 public:
  virtual ~Trainee() = default;
  [[nodiscard]] virtual const Program& program() const = 0;
  /// Gives all sources and runs the set-up ops.
  virtual void begin(const SourceValues& sources) = 0;
  /// Gives some sources; everything else stays as the last step left it.
  virtual void go_on(const SourceValues& data) = 0;
  /// Runs the timed ops.
  virtual void step() = 0;
  /// A value that the last step left, in the host's memory, valid until the next call; nothing where its memory was
  /// reused.
  [[nodiscard]] virtual std::optional<TensorView> left(ValueId id) = 0;
};

/// The textbook in the types of the recipe, every op off at random by up to half its bound, which is about what correct
/// sums of products use of theirs at most, and rounded: a machine that has the recipe.
class TextbookTrainee : public Trainee {
 public:
  /// Trainees of different numbers err differently.
  TextbookTrainee(Program program, int number);
  TextbookTrainee(const TextbookTrainee&) = delete;
  TextbookTrainee& operator=(const TextbookTrainee&) = delete;

  [[nodiscard]] const Program& program() const override { return program_; }
  void begin(const SourceValues& sources) override;
  void go_on(const SourceValues& data) override;
  void step() override;
  [[nodiscard]] std::optional<TensorView> left(ValueId id) override { return machine_.view(id); }

 protected:
  /// Called after each op of a step.
  virtual void after(int /*op*/) {}

  [[nodiscard]] TextbookMachine& machine() { return machine_; }

 private:
  Program program_;
  TextbookMachine machine_;
  std::uint64_t number_;
  std::uint64_t steps_ = 0;
};

/// The mean of the losses that the last step left.
[[nodiscard]] double loss_left(Trainee& trainee);

/// One step against fp64.
struct StepParity {
  int step = 0;  ///< from 1
  double loss = 0.0;
  double exact_loss = 0.0;                 ///< of the same step in fp64
  int tensors = 0;                         ///< that were compared
  double worst = 0.0;                      ///< the largest error in units of what is allowed; infinite for NaN
  EndToEndResult worst_tensor{};           ///< whose
  std::vector<EndToEndResult> rejected{};  ///< in the order of the program

  [[nodiscard]] bool passed() const { return tensors > 0 && rejected.empty(); }
};

/// A result's error in units of what is allowed: 0 without any, infinite where none is allowed, and for NaN.
[[nodiscard]] double error_over_allowed(const EndToEndResult& result);

/// Which values show training.
using ShownBy = std::function<bool(const Program&, ValueId)>;

/// Somebody whose step is judged.
struct Judged {
  Trainee* trainee;    ///< not null
  ShownBy compares{};  ///< of the values that show training, those that are compared; empty: all
};

/// A step (from 0) of several from the reference's state, judged. All run `program`, or one with other attributes
/// or arithmetic but the same values. The first runs on the calling thread, the others beside it.
[[nodiscard]] std::vector<StepParity> judge_step(const Program& program, const ReferenceTraining& reference, int step,
                                                 std::span<const Judged> several);

/// The losses of training by itself from the reference's beginning, on its data. `alive` is called before each step.
[[nodiscard]] std::vector<double> free_losses(
    Trainee& trainee, const ReferenceTraining& reference, int steps, const std::function<void()>& alive = [] {});

}  // namespace gpubench
