// Programs that an outside oracle computes as well: every op, with attributes and extents where implementations go
// wrong, and whole training steps; or calls that a file describes. torch_ops.py and torch_models.py are the other side.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/transform/differentiate.h"

namespace gpubench::testing {

struct OracleProgram {
  std::string name;
  Program program;
  std::vector<Seed> seeds{};                       ///< where differentiation started, if it did
  std::map<ValueId, ValueId> gradients{};          ///< of the wanted values
  int forward_ops = 0;                             ///< ops before those that differentiate() appended
  bool as_stored = false;                          ///< computed in its own types, as ops that round are about
  std::map<ValueId, std::vector<double>> given{};  ///< elements of sources; others are filled by their specs
};

using OraclePrograms = std::vector<OracleProgram>;

/// What a forward returns: the values that gradients flow into, and those whose gradients are wanted.
struct OracleForward {
  std::vector<ValueId> y, wanted;
  bool loss = false;  ///< y is the loss: its gradient is one
};

/// A program without gradients.
void add_program(OraclePrograms& all, std::string name, const std::function<void(Program&)>& build,
                 bool as_stored = false);
/// A forward and what differentiate() makes of it.
void add_differentiated(OraclePrograms& all, std::string name, const std::function<OracleForward(Program&)>& build);

// By subject, one function each.
void add_matrix_programs(OraclePrograms& all);
void add_image_programs(OraclePrograms& all);
void add_row_programs(OraclePrograms& all);
void add_element_programs(OraclePrograms& all);
void add_collective_programs(OraclePrograms& all);
void add_random_programs(OraclePrograms& all);
/// Suite variants: every op with its attributes combined pairwise.
void add_variants(OraclePrograms& all);
void add_models(OraclePrograms& all);
/// Names of the workloads that are training steps.
[[nodiscard]] std::vector<std::string> training_steps();
/// From FOLDER/calls.json: [{name, kind, attributes, as_stored, inputs: [{name, dtype, shape}], outputs: [the same]}],
/// and FOLDER/calls.f64: the inputs' elements as fp64, one behind the other.
void add_calls(OraclePrograms& all, const std::string& folder);

}  // namespace gpubench::testing
