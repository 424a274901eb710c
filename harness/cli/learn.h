// How what `gpubench learn` found is told: a table, JSON, charts, a page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/cli/verb_output.h"
#include "harness/core/text/text_table.h"
#include "harness/page/document.h"
#include "harness/report/json_parser.h"
#include "harness/verify/learning.h"

namespace gpubench {

/// A row for each recipe, and one for each broken recipe that was tried.
[[nodiscard]] std::string table_of(const ModelLearning& model, const ConsoleStyle& style);
/// What all of it comes to, and what it does not show.
[[nodiscard]] std::string summary_of(std::span<const ModelLearning> models, const Completion& completion,
                                     const ConsoleStyle& style);
/// The worst verdict of the models; unsupported where the device ran none of their recipes, skipped where nothing is
/// wrong as far as it came.
[[nodiscard]] Verdict verdict_of(std::span<const ModelLearning> models, const Completion& completion);

[[nodiscard]] Json json_of(const ModelLearning& model);

/// "gpt2" of "transformer/gpt2_train_step/b=2,...".
[[nodiscard]] std::string model_name(const ModelLearning& model);

/// A chart, and its name among those of its model: letters, digits and dashes.
struct LearningChart {
  std::string key;
  chart::PlotChart plot;
};
/// Of one model: losses of training by itself, their distance from those of fp64, the steps that were judged one by
/// one, and of each recipe the broken ones beside it.
[[nodiscard]] std::vector<LearningChart> charts_of(const ModelLearning& model);
/// The charts of all models as files of their own.
[[nodiscard]] std::vector<page::Drawing> learning_drawings(std::span<const ModelLearning> models);
/// All of it as one document. `device`: its name; untrusted, as all text.
[[nodiscard]] std::string learning_page(std::span<const ModelLearning> models, const Completion& completion,
                                        const std::string& device);

}  // namespace gpubench
