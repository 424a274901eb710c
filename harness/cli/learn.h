// Output of `gpubench learn`: a table, JSON, charts, a page.
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

/// A row per recipe, and per broken recipe that was tried.
[[nodiscard]] std::string table_of(const ModelLearning& model, const ConsoleStyle& style);
[[nodiscard]] std::string summary_of(std::span<const ModelLearning> models, const Completion& completion,
                                     const ConsoleStyle& style);
/// The worst verdict of the models. `unsupported` if the device ran none of their recipes; `skipped` if it was
/// interrupted and nothing failed.
[[nodiscard]] Verdict verdict_of(std::span<const ModelLearning> models, const Completion& completion);

[[nodiscard]] Json json_of(const ModelLearning& model);

/// "gpt2" of "transformer/gpt2_train_step/b=2,...".
[[nodiscard]] std::string model_name(const ModelLearning& model);

/// `key`: unique within its model; letters, digits and dashes.
struct LearningChart {
  std::string key;
  chart::PlotChart plot;
};
[[nodiscard]] std::vector<LearningChart> charts_of(const ModelLearning& model);
[[nodiscard]] std::vector<page::Drawing> learning_drawings(std::span<const ModelLearning> models);
/// `device`: untrusted text.
[[nodiscard]] std::string learning_page(std::span<const ModelLearning> models, const Completion& completion,
                                        const std::string& device);

}  // namespace gpubench
