#include "harness/predict/gradient_exchange.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpubench {
namespace {

/// A step's gradients are reduced in f32 or bf16 and its weights gathered in bf16; the sum of both. Or gradients alone,
/// there and back.
constexpr double bytes_on_the_wire = 6.0;  // for each parameter of a device

// Parameters that are sent as one message: Megatron-LM's, larger where more devices make a ring's steps more.
double bucket_of(std::int64_t members) { return std::max(40e6, 1e6 * static_cast<double>(members)); }

}  // namespace

GradientExchange& GradientExchange::operator+=(const GradientExchange& more) {
  seconds += more.seconds;
  latency_s += more.latency_s;
  by_level.resize(std::max(by_level.size(), more.by_level.size()));
  for (std::size_t i = 0; i < more.by_level.size(); ++i) by_level[i] += more.by_level[i];
  return *this;
}

GradientExchange exchange_of(double parameters, const Scattered& group, Optimizer optimizer, const Network& network) {
  GradientExchange wire;
  wire.by_level = seconds_by_level(bytes_on_the_wire * parameters, group, network);
  if (group.members < 2) return wire;
  const double bytes_s = std::reduce(wire.by_level.begin(), wire.by_level.end());
  const double buckets = std::ceil(parameters / bucket_of(group.members));
  const InNodes at = in_nodes(group, network);
  const double bucket_s = bytes_s / buckets;
  wire.seconds = buckets * (optimizer == Optimizer::sharded
                                ? 2.0 * fastest_way(Passes::once, at, 0.5 * bucket_s).seconds(0.5 * bucket_s)
                                : fastest_way(Passes::there_back, at, bucket_s).seconds(bucket_s));
  wire.latency_s = wire.seconds - bytes_s;
  return wire;
}

std::string slowest_of(const GradientExchange& wire, const Network& network) {
  if (!(wire.seconds > 0.0)) return "none";
  const auto slowest = std::ranges::max_element(wire.by_level);
  if (wire.latency_s > *slowest) return "latency";
  return level_name(network, static_cast<std::size_t>(slowest - wire.by_level.begin()));
}

}  // namespace gpubench
