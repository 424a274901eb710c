// A step of several ranks: layers cut over axis "tp", stages of layers along "pp". After Shoeybi et al., "Megatron-LM",
// 2019 (arXiv:1909.08053), figure 3a.
#pragma once

#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/collective.h"
#include "reference/ops/gemm.h"

namespace gpubench::testing {

struct MeshStep {
  Program program;
  std::vector<ValueId> gradients;
};

/// One stage per rank along pp, of `layers` layers: h = x w1 with w1's columns over tp, y = h w2 with w2's rows over
/// tp, whose addends are summed; the last y goes to the next stage. dw1 = x^T h stands for a layer's backward. The
/// batch is a shard without an axis. `held`: ranks of the mesh; empty: all.
inline MeshStep mesh_step(const Mesh& mesh, const std::vector<int>& held, int layers) {
  constexpr std::int64_t rows = 4;
  constexpr std::int64_t width = 8;
  const int tp = mesh.axis("tp");
  const std::int64_t parts = mesh.axes()[static_cast<std::size_t>(tp)].ranks;
  MeshStep step{Program(mesh, held), {}};
  Program& p = step.program;
  std::vector<int> ranks = held;
  for (int rank = 0; held.empty() && rank < mesh.ranks(); ++rank) ranks.push_back(rank);
  const auto named = [&](const std::string& name, int rank) { return name_on_rank(name, rank, mesh.ranks()); };
  const auto source = [&](const std::string& name, int rank, const Shape& shape, AxisSpread spread) {
    TensorSpec spec = tensor(named(name, rank), DType::f32, shape, Role::input, Fill::integers(-2, 2));
    spec.placement = Placement::on(rank, mesh.ranks());
    spec.placement.spread = {spread};
    return p.add(std::move(spec));
  };
  const auto over_tp = [&](int rank, int tensor_axis) {
    return AxisSpread{AxisSpread::Kind::sharded, tp, tensor_axis, mesh.place(rank, tp), static_cast<int>(parts)};
  };
  // Calls each group along an axis once, with its held members.
  const auto along = [&](const char* axis, std::vector<ValueId>& now, const auto& call) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const RankGroup group = mesh.group(ranks[i], axis);
      std::vector<std::size_t> places;
      for (std::size_t j = 0; j < ranks.size(); ++j) {
        if (group.contains(ranks[j])) places.push_back(j);
      }
      if (places.front() != i) continue;
      std::vector<ValueId> x;
      for (const std::size_t place : places) x.push_back(now[place]);
      const std::vector<ValueId> y = call(group, x);
      for (std::size_t k = 0; k < places.size(); ++k) now[places[k]] = y[k];
    }
  };
  std::vector<ValueId> now;
  for (const int rank : ranks) now.push_back(source("x", rank, {rows, width}, Placement::shard(0).spread[0]));
  for (int layer = 0; layer < layers; ++layer) {
    const std::string number = std::to_string(layer);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const ValueId w1 = source("up" + number + ".w", ranks[i], {width, width / parts}, over_tp(ranks[i], 1));
      const ValueId w2 = source("down" + number + ".w", ranks[i], {width / parts, width}, over_tp(ranks[i], 0));
      const ValueId x = now[i];
      const ValueId h = gemm(p, {}, Math{}, named("up" + number, ranks[i]), x, w1).c;
      now[i] = gemm(p, {}, Math{}, named("down" + number, ranks[i]), h, w2).c;
      step.gradients.push_back(gemm(p, {.transpose_a = true}, Math{}, named("dw" + number, ranks[i]), x, h).c);
    }
    along("tp", now, [&](const RankGroup& group, const std::vector<ValueId>& x) {
      return all_reduce(p, {group.size()}, Math{}, p.unique_name("sum" + number + "." + std::to_string(group[0])), x,
                        true, group);
    });
  }
  along("pp", now, [&](const RankGroup& group, const std::vector<ValueId>& x) {
    return send_recv(p, {group.size(), 1}, "next." + std::to_string(group[0]), x, group);
  });
  return step;
}

}  // namespace gpubench::testing
