// A workload. One file in suites/ declares its grid and builds its program; everything else is derived.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/case.h"
#include "harness/core/program.h"
#include "harness/core/recipe.h"

namespace gpubench {

struct Point {
  Dims dims;
  std::string label;
  Tier tier = Tier::quick;
  std::vector<std::string> recipes = {};  ///< the grid's recipes that suit this point; empty: all
  std::vector<std::string> modes = {};    ///< of the workload, as in the id: "in_place"
  Cadence cadence = Cadence::streaming;   ///< if not streaming, a mode as well
  std::optional<double> calls = {};       ///< calls in a list of shapes (--shapes)
  bool keeps_recipes = false;             ///< its recipes are used on any device, because a list gives them
};

struct Grid {
  std::vector<Point> points;
  std::vector<std::string> recipes{"f32", "bf16"};

  [[nodiscard]] const std::vector<std::string>& recipes_of(const Point& point) const {
    return point.recipes.empty() ? recipes : point.recipes;
  }
};

/// The rate shown first.
enum class PrimaryMetric { flop_per_s, bytes_per_s, items_per_s };

struct WorkloadInfo {
  std::string name;         ///< "linear_forward"; the second part of the case id
  std::string description;  ///< one sentence
  std::string batch_axis;   ///< the dimension that --batch sets ("m", "n", "b"); empty: none
  PrimaryMetric headline = PrimaryMetric::flop_per_s;
  std::string item;  ///< "tokens", "images", "elements": what items_per_s counts
  CacheMode cache = CacheMode::cold;
  /// Number of ranks; one by default.
  int min_ranks = 1;
  int max_ranks = 1;
  bool on_all_ranks = false;  ///< by default on 1, 2, 4, ... up to the device's ranks, not on the fewest
  /// Whether this many ranks can run a point with these extents; other points are left out. None: all can.
  std::function<bool(const Dims& dims, int ranks)> fits = {};
  /// Optional dimensions of points, with extent 1 by default.
  std::vector<std::string> axes_of_1 = {};
  bool shards_weights = false;    ///< its ranks can keep parts of its weights (RankLayout::fsdp)
  bool shares_tensors = false;    ///< its ranks can share its tensors (RankLayout::tp)
  bool spreads_experts = false;   ///< its ranks can have some of its experts each (RankLayout::ep)
  bool shares_sequences = false;  ///< its ranks can have parts of its sequences (RankLayout::cp)
  bool shares_layers = false;     ///< its ranks can have some of its layers each (RankLayout::pp)
};

class Workload {
 public:
  virtual ~Workload() = default;
  [[nodiscard]] virtual WorkloadInfo info() const = 0;
  [[nodiscard]] virtual Grid grid() const = 0;
  /// The work of all ranks. Pure; throws ProgramError for inconsistent extents.
  [[nodiscard]] virtual Program build(const Case& c) const = 0;
  /// Items (samples, tokens) per run of the program, on all ranks together.
  [[nodiscard]] virtual double items(const Case& c) const = 0;
};

struct Suite {
  std::string name;
  std::string description;
  std::vector<std::shared_ptr<const Workload>> workloads;
  bool only_by_name = false;   ///< not part of "all", nor of the default
  bool repeats_steps = false;  ///< other suites' training steps on more ranks: not part of an implementation's check
};

}  // namespace gpubench
