// Suite link: transfers between a device and a peer or the host's memory, pinned and pageable.
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

// Most machines have no peer, so peer links start at tier standard.
Grid link_sizes(bool to_peer) {
  const auto point = [](std::int64_t bytes, std::string label, Tier tier) {
    return Point{{{"bytes", bytes}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = {"f32"};
  grid.points = {
      point(4096, "one page", Tier::standard),
      point(std::int64_t{64} << 20, "64 MiB", Tier::standard),
      point(std::int64_t{1} << 30, "1 GiB", Tier::large),
  };
  if (!to_peer) grid.points.insert(grid.points.begin(), point(65536, "64 KiB", Tier::smoke));
  return grid;
}

Program move_between(const Case& c, const Recipe& r, Memory from, Memory to) {
  Program p;
  const std::int64_t n = c.dim("bytes") * 8 / bits_of(r.tensor);
  TensorSpec x = tensor("x", r.tensor, {n}, Role::input, Fill::normal(1.0));
  x.placement = Placement::in(from);
  copy(p, "y", p.add(std::move(x)), to);
  return p;
}

// Bytes that cross the link, counted once; an op's own bytes count both reading and writing.
std::shared_ptr<const Workload> link_workload(std::string name, std::string description, Memory from, Memory to) {
  return declare({{std::move(name), std::move(description), "", PrimaryMetric::items_per_s, "bytes", CacheMode::cold},
                  link_sizes(from == Memory::peer || to == Memory::peer),
                  [=](const Case& c, const Recipe& r) { return move_between(c, r, from, to); },
                  [](const Case& c) { return static_cast<double>(c.dim("bytes")); }});
}

}  // namespace

Suite link() {
  constexpr Memory device = Memory::device, pinned = Memory::pinned_host, pageable = Memory::pageable_host;
  return {"link",
          "transfers between a device, the host and other devices",
          {
              link_workload("pinned_to_device", "pinned host memory to the device", pinned, device),
              link_workload("device_to_pinned", "the device to pinned host memory", device, pinned),
              link_workload("pageable_to_device", "pageable host memory to the device", pageable, device),
              link_workload("device_to_pageable", "the device to pageable host memory", device, pageable),
              link_workload("device_to_peer", "the device to another device", device, Memory::peer),
              link_workload("peer_to_device", "another device to this one", Memory::peer, device),
          }};
}

}  // namespace gpubench::suites
