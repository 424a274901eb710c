// A case: the identity under which work is planned, run, recorded, compared and rerun.
//
// `<suite>/<workload>/<dims>/<recipe>[/<mode>...]/x<ranks>`, characters [a-z0-9._/=,+x-], at most 200. The same id
// means the same work on every machine, forever; a changed definition gets a new id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/enum_names.h"

namespace gpubench {

/// The cases of a run; each tier includes the lower ones.
enum class Tier { smoke, quick, standard, large };
template <>
inline constexpr auto enum_names<Tier> = std::to_array<std::string_view>({"smoke", "quick", "standard", "large"});

/// The state of the caches when a sample starts. `cold`: rotating copies; `warm`: the same buffers; `step`: as the
/// program leaves them (composite steps).
enum class CacheMode { cold, warm, step };
template <>
inline constexpr auto enum_names<CacheMode> = std::to_array<std::string_view>({"cold", "warm", "step"});

/// Launch by launch, or recorded once and replayed as one graph. No difference on devices without graphs (CPU).
enum class LaunchMode { stream, graph };
template <>
inline constexpr auto enum_names<LaunchMode> = std::to_array<std::string_view>({"stream", "graph"});

/// Collectives back to back, or with all ranks aligned before each.
enum class Cadence { streaming, isolated };
template <>
inline constexpr auto enum_names<Cadence> = std::to_array<std::string_view>({"streaming", "isolated"});

struct RankLayout {
  int tp = 1;                    ///< tensor parallelism: each rank has a part of each large weight
  bool scatters_tokens = false;  ///< sequence parallelism with it
  int fsdp = 1;  ///< fully sharded data parallelism: separate batches, each rank keeps a part of each weight
  int ep = 1;    ///< expert parallelism: separate batches, each rank has some of the experts
  int cp = 1;    ///< context parallelism: each rank has a part of each sequence
  bool passes_keys = false;  ///< with cp: keys and values pass around a ring of these ranks, not to all at once
  int pp = 1;                ///< pipeline parallelism: each rank has some of the layers
  int vp = 1;                ///< virtual pipeline stages per rank, interleaved with the other ranks'
  /// Ranks that together hold a whole model.
  [[nodiscard]] int ranks() const { return tp * fsdp * ep * cp * pp; }
  /// Of these, the ranks that work on the same batch.
  [[nodiscard]] int ranks_of_batch() const { return tp * cp * pp; }
  friend bool operator==(const RankLayout&, const RankLayout&) = default;
};
/// The number of ranks along an axis: "tp", "fsdp", "ep", "cp", "pp", "vp". Null for another.
[[nodiscard]] int* ranks_along(RankLayout& parallel, std::string_view axis);
/// The switch of an axis: "sp" of tp, "ring" of cp. Null for another.
[[nodiscard]] bool* option_of_ranks(RankLayout& parallel, std::string_view name);
/// As modes of a case: "tp=2", "sp"; none for defaults.
[[nodiscard]] std::vector<std::string> modes_of(const RankLayout& parallel);
/// The layout in these modes; ignores others. Throws ProgramError for "tp=" without a number of at least 1.
[[nodiscard]] RankLayout rank_layout_of(const std::vector<std::string>& modes);

using Dims = std::vector<std::pair<std::string, std::int64_t>>;

[[nodiscard]] std::string to_string(const Dims& dims);

/// Whether the text has only an id's characters, and at most its length.
[[nodiscard]] bool is_case_id(std::string_view text);

/// Whether the text can name an implementation under test: 1 to 40 characters of A-Z a-z 0-9 . _ + -, the first a
/// letter or digit.
[[nodiscard]] bool is_contender_name(std::string_view text);

[[nodiscard]] bool is_definition_hash(std::string_view text);

struct Case {
  std::string suite;
  std::string workload;
  Dims dims;
  std::string recipe;
  std::vector<std::string> modes;  ///< only those that differ from the default: of the workload, of the device
  int ranks = 1;
  // Not part of the identity:
  std::string label;  ///< "gpt2-124m qkv"
  Tier tier = Tier::quick;
  CacheMode cache = CacheMode::cold;
  LaunchMode launch = LaunchMode::stream;
  bool fuse = true;  ///< ops may be replaced by the backend's fused ones
  Cadence cadence = Cadence::streaming;
  /// The implementation under test (--impl); empty: the device's libraries.
  std::string contender = {};
  std::optional<double> calls = {};  ///< calls in a list of shapes (--shapes)

  /// Throws ProgramError if a character or the length breaks the grammar.
  [[nodiscard]] std::string id() const;
  /// The id without `/x<ranks>` and the rank layout: the key of the fills, so that all layouts get the same data.
  [[nodiscard]] std::string id_without_ranks() const;
  [[nodiscard]] RankLayout parallel() const { return rank_layout_of(modes); }
  [[nodiscard]] Case on_one_rank() const;
  /// The id, with "@<contender>" if an implementation under test runs it. Unique in a run.
  [[nodiscard]] std::string key() const;
  /// Extent of a dimension. Throws ProgramError if the case has none of that name.
  [[nodiscard]] std::int64_t dim(std::string_view name) const;
  [[nodiscard]] bool has_mode(std::string_view mode) const;
};

}  // namespace gpubench
