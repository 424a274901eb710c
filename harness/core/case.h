// One case: the identity under which work is planned, run, recorded, compared and rerun.
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

/// Which cases a run takes; a lower tier's cases are in the higher ones.
enum class Tier { smoke, quick, standard, large };
template <>
inline constexpr auto enum_names<Tier> = std::to_array<std::string_view>({"smoke", "quick", "standard", "large"});

/// The state of the caches when a sample starts. `cold`: rotating copies; `warm`: the same buffers again and again;
/// `step`: whatever the program itself leaves behind (composite steps).
enum class CacheMode { cold, warm, step };
template <>
inline constexpr auto enum_names<CacheMode> = std::to_array<std::string_view>({"cold", "warm", "step"});

/// How a sequence gets to the device: launch by launch, or recorded once and replayed as one graph. Where a device has
/// no graphs (CPU), there is no difference.
enum class LaunchMode { stream, graph };
template <>
inline constexpr auto enum_names<LaunchMode> = std::to_array<std::string_view>({"stream", "graph"});

/// How collectives follow each other: back to back, or with all ranks lined up before each.
enum class Cadence { streaming, isolated };
template <>
inline constexpr auto enum_names<Cadence> = std::to_array<std::string_view>({"streaming", "isolated"});

/// How the ranks of a training step share its work: each `tp` of them its tensors, those of `fsdp` batches the weights,
/// those of `ep` the experts, those of `cp` the sequences, those of `pp` the layers, and such groups the batch.
struct RankLayout {
  int tp = 1;                    ///< tensor parallelism: ranks that have a part of each large weight
  bool scatters_tokens = false;  ///< sequence parallelism beside it
  int fsdp = 1;  ///< fully sharded data parallelism: ranks with batches of their own that keep a part of each weight
  int ep = 1;    ///< expert parallelism: ranks with batches of their own that have some of the experts each
  int cp = 1;    ///< context parallelism: ranks that have a part of each sequence
  bool passes_keys = false;  ///< beside it: keys and values go round a ring of these ranks, not to all at once
  int pp = 1;                ///< pipeline parallelism: ranks that have some of the layers each
  int vp = 1;                ///< in so many parts, one behind those of all others
  /// Ranks of a group that has a whole model together.
  [[nodiscard]] int ranks() const { return tp * fsdp * ep * cp * pp; }
  /// Of these, those that work on the same batch.
  [[nodiscard]] int ranks_of_batch() const { return tp * cp * pp; }
  friend bool operator==(const RankLayout&, const RankLayout&) = default;
};
/// The number of ranks along the axis of that name: "tp", "fsdp", "ep", "cp", "pp", "vp". Null for another.
[[nodiscard]] int* ranks_along(RankLayout& parallel, std::string_view axis);
/// What is said of an axis beside its ranks, by name: "sp" of tp, "ring" of cp. Null for another.
[[nodiscard]] bool* option_of_ranks(RankLayout& parallel, std::string_view name);
/// As modes of a case: "tp=2", "sp"; none for one rank's tensors whole.
[[nodiscard]] std::vector<std::string> modes_of(const RankLayout& parallel);
/// What such modes say, among others. Throws ProgramError for "tp=" without a number from 1.
[[nodiscard]] RankLayout rank_layout_of(const std::vector<std::string>& modes);

using Dims = std::vector<std::pair<std::string, std::int64_t>>;

/// "m=512,n=512,k=512"
[[nodiscard]] std::string to_string(const Dims& dims);

/// Whether the text has only characters of an id, and at most as many as an id may have.
[[nodiscard]] bool is_case_id(std::string_view text);

/// Whether the text can name an implementation under test: 1 to 40 characters of A-Z a-z 0-9 . _ + -, the first a
/// letter or digit.
[[nodiscard]] bool is_contender_name(std::string_view text);

/// Whether the text could be the def_hash of a record: 16 hexadecimal digits.
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
  bool fuse = true;  ///< ops may be replaced by the fused ones that the backend has
  Cadence cadence = Cadence::streaming;
  /// The implementation under test that runs it (--impl); empty: the device's own.
  std::string contender = {};
  std::optional<double> calls = {};  ///< how often a list of shapes calls it (--shapes)

  /// Throws ProgramError when a character or the length breaks the grammar.
  [[nodiscard]] std::string id() const;
  /// The id without `/x<ranks>` and without how they share the work: the key of the fills, so that all see the same
  /// data.
  [[nodiscard]] std::string id_without_ranks() const;
  [[nodiscard]] RankLayout parallel() const { return rank_layout_of(modes); }
  /// The same work on one rank.
  [[nodiscard]] Case on_one_rank() const;
  /// What a run knows it by: the id, and "@<contender>" where an implementation under test runs it.
  [[nodiscard]] std::string key() const;
  /// Extent of a dimension. Throws ProgramError when the case has no such dimension.
  [[nodiscard]] std::int64_t dim(std::string_view name) const;
  [[nodiscard]] bool has_mode(std::string_view mode) const;
};

}  // namespace gpubench
