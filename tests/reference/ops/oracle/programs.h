// Programs that an external oracle (torch_ops.py, torch_models.py) computes as well: every op with critical attributes
// and extents, whole training steps, and calls that a file describes.
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
  std::vector<Seed> seeds{};                       ///< seeds of differentiate(), if any
  std::map<ValueId, ValueId> gradients{};          ///< of the wanted values
  int forward_ops = 0;                             ///< ops before those of differentiate()
  bool as_stored = false;                          ///< computed in its own types, not in fp64, for ops that round
  std::map<ValueId, std::vector<double>> given{};  ///< elements of sources; others are filled by their specs
};

using OraclePrograms = std::vector<OracleProgram>;

struct OracleForward {
  std::vector<ValueId> y, wanted;
  bool loss = false;  ///< y is the loss: its gradient is one
};

void add_program(OraclePrograms& all, std::string name, const std::function<void(Program&)>& build,
                 bool as_stored = false);
void add_differentiated(OraclePrograms& all, std::string name, const std::function<OracleForward(Program&)>& build);

void add_matrix_programs(OraclePrograms& all);
void add_image_programs(OraclePrograms& all);
void add_row_programs(OraclePrograms& all);
void add_element_programs(OraclePrograms& all);
void add_collective_programs(OraclePrograms& all);
void add_random_programs(OraclePrograms& all);
/// Suite variants: every op with its attributes combined pairwise.
void add_variants(OraclePrograms& all);
void add_models(OraclePrograms& all);
[[nodiscard]] std::vector<std::string> training_steps();
/// From FOLDER/calls.json: [{name, kind, attributes, as_stored, inputs: [{name, dtype, shape}], outputs: [the same]}],
/// and FOLDER/calls.f64: the inputs' elements as fp64, concatenated.
void add_calls(OraclePrograms& all, const std::string& folder);

}  // namespace gpubench::testing
