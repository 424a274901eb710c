// Collectives, in place and not, with several tensors, and with members in reverse order.
#include "reference/ops/collective.h"

#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

const Factor reversed{"reversed", {0, 1}};  // the last rank is the first member
const Factor in_place{"in_place", {0, 1}};

RankGroup members_of(const VariantBuild& call) {
  std::vector<int> members;
  for (int rank = 0; rank < call.ranks; ++rank)
    members.push_back(call.other("reversed") == 0 ? rank : call.ranks - 1 - rank);
  return RankGroup(members);
}

template <class T>
T attributes_of(const VariantBuild& call) {
  T attributes = call.attributes<T>();
  attributes.ranks = call.ranks;
  return attributes;
}

/// A tensor of count(place) elements on each member.
template <class Count>
std::vector<ValueId> on_each(VariantBuild& call, const Count& count) {
  std::vector<ValueId> x;
  const RankGroup members = members_of(call);
  for (int place = 0; place < members.size(); ++place) {
    TensorSpec spec =
        tensor(call.p.unique_name(call.label + ".x"), call.r.tensor, {count(place)}, Role::gradient, Fill::normal(1.0));
    spec.placement = Placement::shard(0, members[place], call.ranks);
    x.push_back(call.p.add(std::move(spec)));
  }
  return x;
}

void build_all_reduce(VariantBuild& call) {
  const std::int64_t tensors = call.other("tensors");
  std::vector<std::vector<ValueId>> lists;
  for (std::int64_t i = 0; i < tensors; ++i) lists.push_back(on_each(call, [&](int) { return call.n + i; }));
  std::vector<ValueId> x;
  for (int place = 0; place < call.ranks; ++place) {
    for (const std::vector<ValueId>& one : lists) x.push_back(one[static_cast<std::size_t>(place)]);
  }
  (void)all_reduce(call.p, attributes_of<AllReduce>(call), call.r.math, call.label, x, call.other("in_place") != 0,
                   members_of(call));
}

void build_all_gather(VariantBuild& call) {
  const auto attributes = attributes_of<AllGather>(call);
  const bool whole = call.other("in_place") != 0;
  const std::vector<ValueId> x = on_each(call, [&](int) { return whole ? call.n * call.ranks : call.n; });
  (void)(whole ? all_gather_in_place(call.p, attributes, call.label, x, members_of(call))
               : all_gather(call.p, attributes, call.label, x, members_of(call)));
}

void build_reduce_scatter(VariantBuild& call) {
  const std::vector<ValueId> x = on_each(call, [&](int) { return call.n * call.ranks; });
  (void)reduce_scatter(call.p, attributes_of<ReduceScatter>(call), call.r.math, call.label, x,
                       call.other("in_place") != 0, members_of(call));
}

void build_broadcast(VariantBuild& call) {
  const auto attributes = attributes_of<Broadcast>(call);
  const RankGroup members = members_of(call);
  TensorSpec spec =
      tensor(call.p.unique_name(call.label + ".x"), call.r.tensor, {call.n}, Role::parameter, Fill::normal(1.0));
  spec.placement = Placement::on(members[attributes.root], call.ranks);
  (void)broadcast(call.p, attributes, call.label, call.p.add(std::move(spec)), members);
}

void build_all_to_all(VariantBuild& call) {
  auto attributes = attributes_of<AllToAll>(call);
  const bool even = call.other("uneven") == 0;
  for (int from = 0; from < call.ranks; ++from) {
    for (int to = 0; to < call.ranks; ++to) attributes.counts.push_back(even ? call.n : (from + 2 * to) % 3 * call.n);
  }
  const auto sent = [&](int place) {
    std::int64_t sum = 0;
    for (int peer = 0; peer < call.ranks; ++peer) sum += attributes.count(place, peer);
    return sum;
  };
  (void)all_to_all(call.p, attributes, call.label, on_each(call, sent), members_of(call));
}

void build_send_recv(VariantBuild& call) {
  const std::vector<ValueId> x = on_each(call, [&](int) { return call.n; });
  (void)send_recv(call.p, attributes_of<SendRecv>(call), call.label, x, members_of(call));
}

}  // namespace

std::vector<Variants> collective_variants() {
  return {
      {"all_reduce", all_reduce_kind, {{"reduction"}, {"tensors", {1, 3}}, in_place, reversed}, build_all_reduce},
      {"all_gather", all_gather_kind, {in_place, reversed}, build_all_gather},
      {"reduce_scatter", reduce_scatter_kind, {{"reduction"}, in_place, reversed}, build_reduce_scatter},
      {"broadcast", broadcast_kind, {{"root", {0, 1}}, reversed}, build_broadcast},
      {"all_to_all", all_to_all_kind, {{"uneven", {0, 1}}, reversed}, build_all_to_all},
      {"send_recv", send_recv_kind, {{"shift", {1, -1}}, {"round", {0, 1}}, reversed}, build_send_recv},
  };
}

}  // namespace gpubench::variants
