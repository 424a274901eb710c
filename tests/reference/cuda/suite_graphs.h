// The cuDNN graphs that the suites ask for. Every distinct convolution of the quick tier, and in bf16 of all tiers; of
// attention one of each sort (mask, head size, query heads to a head of k and v, length in whole tiles or not, types,
// packed or not), since each takes a second or two to compile.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/cuda/cudnn_plan.h"

namespace gpubench::cuda {

struct SuiteGraph {
  std::string name;  ///< "conv2d_forward stride_h=2 bf16 x: bf16[32, 56, 56, 64] ...": the same text, the same work
  CudnnNumerics numerics;
  std::function<CudnnGraph()> build;  ///< throws Unsupported where the call cannot be told to cuDNN
  /// Attention in f32, which cuDNN's fused engines don't have but for TF32 forward, of documents, and sinks' gradient;
  /// softcap's, which cuDNN 9.19 plans for H200 and not for A100 and B200. Own kernels have it.
  bool may_be_unsupported = false;
};

enum class GraphFamily {
  convolution,
  attention,
  deterministic  ///< gradients of attention and of filters, bf16, of the quick tier, without atomic additions
};
[[nodiscard]] std::string_view name(GraphFamily family);

/// Few: of attention and what is deterministic, tier quick in bf16. Those of f16 had bf16's engines and workspaces
/// wherever both were known (51 graphs of 3 chips); each is a second of compiling.
enum class Sorts { all, few };
[[nodiscard]] std::vector<SuiteGraph> suite_graphs(GraphFamily family, Sorts sorts);

// A table of texts, key -> value, kept in a file: what a version of a library answered.

using GoldenRows = std::map<std::string, std::string>;

class GoldenTable {
 public:
  /// Rows of `file`, "key<TAB>value" each; none where there is no such file.
  explicit GoldenTable(std::string file);
  [[nodiscard]] bool exists() const { return exists_; }
  /// The rows whose keys begin with `prefix`.
  [[nodiscard]] GoldenRows rows(const std::string& prefix) const;
  /// Puts `rows` in the place of those whose keys begin with `prefix`, and writes the file.
  void replace(const std::string& prefix, const GoldenRows& rows);

 private:
  std::string file_;
  bool exists_ = false;
  GoldenRows rows_;
};

}  // namespace gpubench::cuda
