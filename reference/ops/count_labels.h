// How many labels of a batch count: what a mean over rows that are on several ranks, or in several micro-batches, is
// divided by.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct CountLabels {
  int ignore_index = -100;
  int parts = 1;  ///< of the labels
  static void visit(auto&& attribute) {
    attribute("ignore_index", &CountLabels::ignore_index);
    attribute("parts", &CountLabels::parts);
  }
};

inline constexpr OpKind count_labels_kind{"count_labels", "labels", "y", defaults_of<CountLabels>, R"(
How many labels are not ignore_index, on average in `parts` of them.
labels: i32, any shape
y: f32 [1]

y = the number of labels that are not ignore_index / parts)"};

/// `wide`: the type of y, as statistics have it. Throws ProgramError for fewer than one part, and naming a tensor that
/// does not fit.
ValueId count_labels(Program& program, const CountLabels& attributes, const Math& math, std::string label,
                     ValueId labels, DType wide = DType::f32);

}  // namespace gpubench
