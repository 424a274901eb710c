// Programs of cross-entropy with every term that the loss may have, for the tests of every backend.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "reference/ops/count_labels.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/tensor_checks.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/reference/indices.h"

namespace gpubench::testing {

struct CrossEntropyProgram {
  Program program;
  ValueId logits, labels;
  std::vector<ValueId> lse, dloss;  ///< one, or none
  std::int64_t rows, classes;       ///< of the logits
  std::string what;
  std::vector<ValueId> scores{};  ///< one, or none: the logits are then the log-sum-exps of parts, [classes, rows]
  std::vector<ValueId> count{};   ///< one, or none
};

/// Loss, gradient, and both at once, of each of these: smoothed labels, a z-loss, rows that are ignored, the mean over
/// a number of them that is given, all of it; and what the second of three parts of the classes tells, its gradient,
/// and the loss made of what as many parts as there are classes tell. Gradients are of a scaled loss, by turns in place
/// of the logits.
inline std::vector<CrossEntropyProgram> cross_entropy_programs(DType dtype, std::int64_t rows, std::int64_t classes) {
  const std::array<CrossEntropy, 5> terms{
      CrossEntropy{.label_smoothing = 0.1}, CrossEntropy{.z_loss = 1e-2}, CrossEntropy{.ignores = true},
      CrossEntropy{.ignores = true, .given_count = true},
      CrossEntropy{.ignores = true, .ignore_index = -7, .label_smoothing = 0.2, .z_loss = 1e-4, .given_count = true}};
  Math math;
  if (dtype == DType::f64) math.accumulate = DType::f64;
  std::vector<CrossEntropyProgram> all;
  for (const CrossEntropy& attributes : terms) {
    for (const char* op : {"forward", "backward", "both", "partial", "backward of a part", "combine"}) {
      CrossEntropyProgram p{{}, {}, {}, {}, {}, rows, classes, std::string(op) + ": " + describe(attributes)};
      const bool in_place = all.size() % 2 == 0;
      const DType wide = statistic_type(dtype);
      p.labels = p.program.add(tensor("labels", DType::i32, Shape{rows}, Role::input));
      std::optional<ValueId> count;
      if (attributes.given_count && !p.what.starts_with("partial")) {
        p.count = {p.program.add(tensor("count", wide, Shape{1}, Role::scalar))};
        count = p.count[0];
      }
      if (p.what.starts_with("combine")) {
        p.logits = p.program.add(tensor("lses", wide, Shape{classes, rows}, Role::statistic));
        p.scores = {p.program.add(tensor("scores", wide, Shape{classes, rows}, Role::statistic))};
        (void)cross_entropy_combine(p.program, math, "op", p.logits, p.scores[0], p.labels, attributes, count);
        all.push_back(std::move(p));
        continue;
      }
      p.logits = p.program.add(tensor("logits", dtype, Shape{rows, classes}, Role::activation));
      CrossEntropy of_part = attributes;
      of_part.first = classes;
      of_part.classes = 3 * classes;
      if (p.what.starts_with("partial")) {
        (void)cross_entropy_partial(p.program, math, "op", p.logits, p.labels, of_part);
        all.push_back(std::move(p));
        continue;
      }
      if (p.what.starts_with("forward")) {
        (void)cross_entropy_forward(p.program, math, "op", p.logits, p.labels, attributes, count);
        all.push_back(std::move(p));
        continue;
      }
      p.dloss = {p.program.add(tensor("dloss", wide, Shape{1}, Role::scalar))};
      if (p.what.starts_with("both")) {
        (void)cross_entropy_forward_backward(p.program, math, "op", p.logits, p.labels, in_place, attributes,
                                             p.dloss[0], count);
      } else {
        p.lse = {p.program.add(tensor("lse", wide, Shape{rows}, Role::statistic))};
        (void)cross_entropy_backward(p.program, math, "op", p.logits, p.labels, p.lse[0], in_place,
                                     p.what.starts_with("backward of a part") ? of_part : attributes, p.dloss[0],
                                     count);
      }
      all.push_back(std::move(p));
    }
  }
  return all;
}

/// Every third row is ignored where rows may be.
inline void fill(ProgramRun& run, const CrossEntropyProgram& p) {
  run.set_random(p.logits, 1, 3.0);
  for (const ValueId scores : p.scores) run.set_random(scores, 2, 3.0);
  const auto& attributes = p.program.op(0).attributes.as<CrossEntropy>();
  std::vector<double> labels = indices(p.rows, attributes.all_classes(p.classes), 2);
  if (attributes.ignores) {
    for (std::size_t row = 1; row < labels.size(); row += 3) labels[row] = attributes.ignore_index;
  }
  run.set(p.labels, labels);
  for (const ValueId count : p.count) run.set(count, std::vector<double>{0.375 * static_cast<double>(p.rows)});
  for (const ValueId dloss : p.dloss) run.set(dloss, std::vector<double>{1000.0});
  if (p.lse.empty()) return;
  const std::vector<double> logits = run.get(p.logits);
  std::vector<double> sums(labels.size());
  for (std::size_t i = 0; i < logits.size(); ++i) sums[i / static_cast<std::size_t>(p.classes)] += std::exp(logits[i]);
  for (double& sum : sums) sum = std::log(sum);
  run.set(p.lse[0], sums);
}

/// Labels of which every third does not count.
struct CountedLabels {
  Program program;
  ValueId labels;

  CountedLabels(std::int64_t rows, int parts) {
    labels = program.add(tensor("labels", DType::i32, Shape{rows}, Role::input));
    (void)count_labels(program, {.ignore_index = -7, .parts = parts}, Math{}, "op", labels);
  }
  void fill(ProgramRun& run) const {
    std::vector<double> values(static_cast<std::size_t>(run.program().spec(labels).shape.elements()));
    for (std::size_t row = 0; row < values.size(); ++row) values[row] = row % 3 == 1 ? -7.0 : static_cast<double>(row);
    run.set(labels, values);
  }
};

}  // namespace gpubench::testing
