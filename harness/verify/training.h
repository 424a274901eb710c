// Training, step by step, against the same training in fp64.
//
// A loss curve shows little: with Adam, a gradient that is 1000 times too large gives the same curve. So each step is
// judged alone ("teacher-forced"). It starts from the state of training in fp64, rounded once to the types of the
// recipe (f32 masters, bf16 copies, ...). The loss, all remaining gradients, and all updated weights and moments are
// compared with the same step in fp64, by the rule of end_to_end.h. Errors of a step do not reach the next.
//
// The reference is the model's step in f32, widened to fp64, for all recipes of a model. Its state stays in fp64 and
// starts with moments of zero and step 1. Tokens, images and labels are random; a few batches repeat in turn, so that
// the loss falls.
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

[[nodiscard]] std::vector<ValueId> losses_of(const Program& program);
/// Whether the program has a loss, and an optimizer with a learning rate.
[[nodiscard]] bool is_training_step(const Program& program);
/// Whether a step of training is judged by this value: losses, gradients and their norm, updates of sources. Not
/// activations and statistics, which the check of single ops judges, nor 8-bit copies and their scales: several powers
/// of two are valid scales.
[[nodiscard]] bool shows_training(const Program& program, ValueId id);

using SourceValues = std::map<ValueId, HostTensor>;

class ReferenceTraining {
 public:
  /// Runs `steps` steps and keeps the states before the first `kept` of them. `step`: the training step of the model in
  /// f32. Calls `alive` before each step. Throws ProgramError if `step` is not a training step.
  ReferenceTraining(
      const Program& step, std::uint64_t seed, int batches, int steps, int kept,
      const std::function<void()>& alive = [] {});

  [[nodiscard]] int kept() const { return static_cast<int>(states_.size()); }
  /// Of each step, before its update.
  [[nodiscard]] const std::vector<double>& losses() const { return losses_; }

  /// The sources of a recipe's program before `step` (0 ... kept() - 1), rounded to their types; by name, for masters
  /// without ".master". Sources that only the recipe has, such as a loss scale, get their usual fill.
  [[nodiscard]] SourceValues sources(const Program& recipe, int step) const;
  /// Only the batch and the step's number. For any step.
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

class Trainee {
 public:
  virtual ~Trainee() = default;
  [[nodiscard]] virtual const Program& program() const = 0;
  /// Sets all sources and runs the set-up ops.
  virtual void begin(const SourceValues& sources) = 0;
  /// Sets some sources and keeps the rest of the state.
  virtual void go_on(const SourceValues& data) = 0;
  /// Runs the timed ops.
  virtual void step() = 0;
  /// A value after the last step, on the host, valid until the next call; empty if its memory was reused.
  [[nodiscard]] virtual std::optional<TensorView> left(ValueId id) = 0;
};

/// Emulates a device: the textbook in the types of the recipe, with random errors of up to half of each op's bound
/// (about the largest share that correct sums of products use), rounded.
class TextbookTrainee : public Trainee {
 public:
  /// `number`: seeds the errors.
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

[[nodiscard]] double loss_left(Trainee& trainee);

struct StepParity {
  int step = 0;  ///< from 1
  double loss = 0.0;
  double exact_loss = 0.0;                 ///< of the same step in fp64
  int tensors = 0;                         ///< compared tensors
  double worst = 0.0;                      ///< the largest error_over_allowed()
  EndToEndResult worst_tensor{};           ///< its tensor
  std::vector<EndToEndResult> rejected{};  ///< in the order of the program

  [[nodiscard]] bool passed() const { return tensors > 0 && rejected.empty(); }
};

/// error / allowed; 0 for no error, else infinite if `allowed` is 0, and for NaN.
[[nodiscard]] double error_over_allowed(const EndToEndResult& result);

using ShownBy = std::function<bool(const Program&, ValueId)>;

struct Judged {
  Trainee* trainee;    ///< not null
  ShownBy compares{};  ///< selects the compared values of shows_training(); empty: all
};

/// Judges a step (from 0) of several trainees from the reference's state. All run `program`, or one with other
/// attributes or arithmetic and the same values. The first runs on the calling thread, the others on other threads.
[[nodiscard]] std::vector<StepParity> judge_step(const Program& program, const ReferenceTraining& reference, int step,
                                                 std::span<const Judged> several);

/// The losses of training from the reference's first state, on its data. Calls `alive` before each step.
[[nodiscard]] std::vector<double> free_losses(
    Trainee& trainee, const ReferenceTraining& reference, int steps, const std::function<void()>& alive = [] {});

}  // namespace gpubench
