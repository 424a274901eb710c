// GPT-2 as a program (Radford et al. 2019): blocks, the whole language model, and the training step around them.
// Only forwards are written here; backwards come from differentiate().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench::suites {

struct Gpt2Shape {
  std::int64_t batch = 1, sequence = 0, width = 0, heads = 0;
  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
};

/// A trained tensor: the weight that ops read, and its f32 master where the recipe keeps a copy of lower precision.
struct Parameter {
  ValueId weight;
  std::optional<ValueId> master;
};

/// Builds the layers of a GPT-2 into one program and remembers its parameters.
class Gpt2Model {
 public:
  Gpt2Model(Program& program, const Recipe& recipe, Gpt2Shape shape)
      : program_(program), recipe_(recipe), shape_(shape) {}

  /// x: [tokens, width] -> [tokens, width]: x + attention(ln1(x)), then + mlp(ln2(.)). Names start with `prefix`.
  ValueId block(const std::string& prefix, ValueId x);
  /// tokens i32 [tokens] -> logits [tokens, vocabulary], with `layers` blocks and the embedding tied to the head.
  ValueId language_model(ValueId tokens, ValueId positions, std::int64_t layers, std::int64_t vocabulary);

  /// Appends what trains the parameters: backward from the seed, gradient norm, clip at 1, AdamW in place.
  /// `seed_gradient` empty: `value` is the loss. `also_wanted`: values whose gradient is computed too (the block's
  /// input). Returns the gradients of the parameters as the backward leaves them, before the clip.
  std::vector<ValueId> train(ValueId value, std::optional<ValueId> seed_gradient,
                             const std::vector<ValueId>& also_wanted);

 private:
  ValueId matrix(const std::string& name, Shape shape, double scale);
  ValueId wide_parameter(const std::string& name, std::int64_t n, double offset);
  ValueId linear(const std::string& label, ValueId x, std::int64_t n, std::int64_t k);
  ValueId norm(const std::string& label, ValueId x);
  ValueId self_attention(const std::string& prefix, ValueId x);
  ValueId mlp(const std::string& prefix, ValueId x);
  void optimize(const std::string& label, const std::vector<Parameter>& parameters,
                const std::vector<ValueId>& gradients, bool copies, ValueId lr, ValueId step);

  Program& program_;
  const Recipe& recipe_;
  Gpt2Shape shape_;
  std::vector<Parameter> parameters_;
};

}  // namespace gpubench::suites
