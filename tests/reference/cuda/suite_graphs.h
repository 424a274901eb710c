// cuDNN graphs of the suites: every distinct convolution up to tier standard, and in bf16 of all tiers. Attention is
// reduced to one graph per sort (mask, head sizes, query heads per key head, whole tiles or not, types, packed or not),
// since each compiles for a second or two.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/cuda/cudnn_plan.h"

namespace gpubench::cuda {

struct SuiteGraph {
  std::string name;  ///< "conv2d_forward stride_h=2 bf16 x: bf16[32, 56, 56, 64] ..."; unique
  CudnnNumerics numerics;
  std::function<CudnnGraph()> build;  ///< throws Unsupported if cuDNN cannot express the call
  /// Attention that cuDNN's fused engines lack at least in part: f32 (they have TF32 forward), documents, different
  /// head sizes of k and v, gradients of sinks and of softcap (9.19 plans softcap's for H200 only). Own kernels have
  /// all of it.
  bool may_be_unsupported = false;
};

enum class GraphFamily {
  convolution,
  attention,
  deterministic  ///< gradients of attention and filters up to tier standard in bf16, without atomic additions
};
[[nodiscard]] std::string_view name(GraphFamily family);

/// few: attention and deterministic only of tier quick in bf16. In the 51 graphs on 3 chips where both were known, f16
/// had bf16's engines and workspaces; each compiles for a second.
enum class Sorts { all, few };
[[nodiscard]] std::vector<SuiteGraph> suite_graphs(GraphFamily family, Sorts sorts);

// A table of texts, key -> value, in a file: the answers of a library's version.

using GoldenRows = std::map<std::string, std::string>;

class GoldenTable {
 public:
  /// Reads `file`, one "key<TAB>value" per line; empty if the file does not exist.
  explicit GoldenTable(std::string file);
  [[nodiscard]] bool exists() const { return exists_; }
  [[nodiscard]] GoldenRows rows(const std::string& prefix) const;
  /// Replaces the rows whose keys begin with `prefix`, and writes the file.
  void replace(const std::string& prefix, const GoldenRows& rows);

 private:
  std::string file_;
  bool exists_ = false;
  GoldenRows rows_;
};

}  // namespace gpubench::cuda
