#include "harness/predict/step_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

namespace gpubench {
namespace {

/// Smaller differences of the wire's share of a step are noise.
constexpr double min_apart = 0.01;

struct Axis {
  std::string_view name;
  std::int64_t ParallelLayout::*extent;
};
constexpr Axis axes[] = {{"tp", &ParallelLayout::tensor},        {"pp", &ParallelLayout::pipeline},
                         {"cp", &ParallelLayout::context},       {"ep", &ParallelLayout::expert},
                         {"vp", &ParallelLayout::virtual_parts}, {"mbs", &ParallelLayout::micro_batch}};

/// Solves T = F / r + x W of two steps for x; nullopt if they do not determine it.
std::optional<double> exposure_of(const StepTerms& a, double a_s, const StepTerms& b, double b_s) {
  const double apart = a.flop * b.wire.seconds - b.flop * a.wire.seconds;
  if (!(std::fabs(apart) > min_apart * a.flop * b_s)) return {};
  return (a.flop * b_s - b.flop * a_s) / apart;
}

double doublings(std::int64_t devices, std::int64_t first) {
  return std::log2(static_cast<double>(devices) / static_cast<double>(first));
}

}  // namespace

std::optional<std::int64_t> extent_in(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  return is_number && value >= 1 && value <= max_extent ? std::optional(value) : std::nullopt;
}

ParallelLayout parse_layout(std::string_view text) {
  ParallelLayout layout;
  std::vector<std::string_view> given;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::string_view name = word.substr(0, word.find('='));
    const auto* const axis = std::ranges::find(axes, name, &Axis::name);
    const std::string_view digits = word.substr(std::min(word.size(), name.size() + 1));
    const std::optional<std::int64_t> extent = extent_in(digits);
    if (axis == std::end(axes) || !extent) {
      throw std::invalid_argument(
          fmt::format("'{}' is not an axis with an extent; expected some of tp, pp, cp, ep, vp and mbs, each from 1 to "
                      "{}: tp=8,pp=4",
                      word, max_extent));
    }
    if (std::ranges::find(given, name) != given.end())
      throw std::invalid_argument(fmt::format("'{}' is given twice", name));
    given.push_back(name);
    layout.*(axis->extent) = *extent;
  }
  if (layout.virtual_parts > 1 && layout.pipeline == 1)
    throw std::invalid_argument(fmt::format("vp={} without a pipeline; expected pp above 1", layout.virtual_parts));
  return layout;
}

std::string to_string(const ParallelLayout& layout) {
  std::string text;
  for (const Axis& axis : axes) {
    const std::int64_t extent = layout.*(axis.extent);
    if (extent > 1 || axis.name == "tp") text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, extent);
  }
  return text;
}

StepTerms terms_of(const TransformerModel& model, const StepShape& shape, const Network& network) {
  const ParallelLayout& at = shape.layout;
  const std::int64_t replica = at.replica();
  if (shape.devices < 1 || shape.devices % replica != 0) {
    throw std::invalid_argument(fmt::format("{} devices are not a multiple of the {} devices of a replica ({})",
                                            shape.devices, replica, to_string(at)));
  }
  StepTerms terms;
  terms.replicas = shape.devices / replica;
  const std::int64_t round = terms.replicas * at.micro_batch;
  if (shape.global_batch < round || shape.global_batch % round != 0) {
    throw std::invalid_argument(
        fmt::format("a global batch of {} sequences is not divisible into micro-batches of {} on {} replicas; expected "
                    "a multiple of {}",
                    shape.global_batch, at.micro_batch, terms.replicas, round));
  }
  terms.sharing = terms.replicas * at.context;
  if (at.expert > 1 && (model.experts % at.expert != 0 || terms.sharing % at.expert != 0)) {
    throw std::invalid_argument(
        fmt::format("ep={} does not divide both the {} experts of {} and the {} devices that share the other weights",
                    at.expert, model.experts, model.name, terms.sharing));
  }
  terms.micro_batches = shape.global_batch / round;
  const double idle = static_cast<double>(at.pipeline - 1) / static_cast<double>(at.virtual_parts);
  const double filled = static_cast<double>(terms.micro_batches) + idle;
  const double tokens = static_cast<double>(at.micro_batch * shape.sequence);
  terms.flop = filled * tokens * model.flop_per_token(shape.sequence) / static_cast<double>(replica);
  terms.bubble = idle / filled;

  const double split = static_cast<double>(at.tensor * at.pipeline);
  const double of_experts = model.expert_parameters();
  const double dense = (model.parameters() - of_experts) / split;
  terms.wire = exchange_of(dense, {terms.sharing, at.tensor}, at.optimizer, network);
  if (of_experts > 0.0) {
    const double own = of_experts / split / static_cast<double>(at.expert);
    terms.wire += exchange_of(own, {terms.sharing / at.expert, at.tensor * at.expert}, at.optimizer, network);
  }
  return terms;
}

double StepModel::seconds(const StepTerms& terms, std::int64_t devices) const {
  return (terms.flop / flop_per_s + exposed * terms.wire.seconds) *
         (1.0 + growth * std::max(0.0, doublings(devices, first)));
}

StepModel fit(const TransformerModel& model, std::span<const MeasuredStep> measured, const Network& network,
              double exposed) {
  if (measured.empty() || measured.size() > 2)
    throw std::invalid_argument(fmt::format("{} measured steps; expected one or two", measured.size()));
  const MeasuredStep& small = measured.front();
  const StepTerms a = terms_of(model, small.shape, network);
  StepModel result{0.0, exposed, usual_growth, small.shape.devices, true};
  const auto take_rate = [&] {
    const double working = small.seconds - result.exposed * a.wire.seconds;
    if (!(working > 0.0)) {
      throw std::invalid_argument(fmt::format(
          "a step of {} s on {} devices is shorter than the {:.3g} s that its gradients and weights take on "
          "the wire; expected a faster network, or a longer step",
          small.seconds, small.shape.devices, a.wire.seconds));
    }
    result.flop_per_s = a.flop / working;
  };
  if (measured.size() == 1) {
    take_rate();
    return result;
  }
  const MeasuredStep& large = measured.back();
  const StepTerms b = terms_of(model, large.shape, network);
  result.growth = 0.0;
  if (const std::optional<double> share = exposure_of(a, small.seconds, b, large.seconds)) {
    result.exposed = std::clamp(*share, 0.0, max_exposed);
    result.assumes_exposure = false;
    take_rate();
    return result;
  }
  take_rate();
  const double twice = doublings(large.shape.devices, small.shape.devices);
  if (twice > 0.0) {
    const double alike = result.seconds(b, large.shape.devices);
    result.growth = std::clamp((large.seconds / alike - 1.0) / twice, 0.0, max_growth);
  }
  return result;
}

namespace {

/// Bytes per parameter of a device: gradients reduced in f32 (4) and weights gathered in bf16 (2). The all_reduce of a
/// replicated optimizer counts the same.
constexpr double bytes_on_the_wire = 6.0;

// Parameters per message: Megatron-LM's bucket size, which grows with the number of steps of a ring.
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

namespace {

constexpr double bytes_of_activation = 2.0, bytes_of_weight = 2.0, bytes_of_gradient = 4.0, bytes_of_optimizer = 12.0;

double real(std::int64_t value) { return static_cast<double>(value); }

/// Elements per token that a layer keeps for its backward: inputs and outputs of both norms; q, k, v and output of
/// attention; inner columns of the feed-forward network before and after the activation.
double kept_by_layer(const TransformerModel& m) {
  const double inner = (m.gated ? 3.0 : 2.0) * real(m.feed_forward) * real(m.experts > 1 ? m.experts_per_token : 1);
  return 4.0 * real(m.hidden) + 2.0 * real(m.heads + m.kv_heads) * real(m.head_dim) + inner;
}

}  // namespace

DeviceMemory memory_of(const TransformerModel& model, const StepShape& shape, const StepTerms& terms) {
  const ParallelLayout& at = shape.layout;
  const double layers = real((model.layers + at.pipeline - 1) / at.pipeline);  // of the largest stage
  const double share = layers / real(model.layers);
  const double table = real(model.vocabulary) * real(model.hidden);
  const double tables = (model.tied ? 1.0 : 2.0) * table, experts = model.expert_parameters();
  const double of_layers = model.parameters() - experts - tables;
  const double dense = (share * of_layers + (at.pipeline > 1 ? table : tables)) / real(at.tensor);
  const double own_experts = share * experts / real(at.tensor * at.expert);
  const bool sharded = at.optimizer == Optimizer::sharded;
  const double sharing = sharded ? real(terms.sharing) : 1.0;
  const double sharing_experts = sharded ? sharing / real(at.expert) : 1.0;

  DeviceMemory memory;
  memory.weights = bytes_of_weight * (dense + own_experts);
  memory.gradients = bytes_of_gradient * (dense + own_experts);
  memory.optimizer = bytes_of_optimizer * (dense / sharing + own_experts / sharing_experts);
  // Interleaved parts keep more micro-batches in flight: Korthikanti et al., section 4.2.3.
  const double ahead = at.virtual_parts > 1 ? real(at.pipeline - 1) / real(at.virtual_parts) : 0.0;
  const double waiting = std::min(real(terms.micro_batches), real(at.pipeline) + ahead);
  const double tokens = real(at.micro_batch * shape.sequence) / real(at.context);
  const double of_layer = bytes_of_activation * tokens * kept_by_layer(model) / real(at.tensor);
  const double input_of_layer = bytes_of_activation * tokens * real(model.hidden) / real(at.tensor);
  // Logits and their gradient are on the last stage, of one micro-batch; a pipeline's first stage has none.
  const double logits =
      at.pipeline > 1 ? 0.0 : 2.0 * bytes_of_activation * tokens * real(model.vocabulary) / real(at.tensor);
  memory.activations = waiting * layers * of_layer + logits;
  memory.recomputed = waiting * layers * input_of_layer + of_layer + logits;
  return memory;
}

}  // namespace gpubench
