#include "reference/ops/attention_textbook.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

constexpr double min_gap = 110.0;  // between scores

constexpr std::uint64_t of_v = hash("v"), of_do = hash("do"), of_o = hash("o");

double odd_element(std::uint64_t tensor, std::int64_t element) {
  return odd_number(hash_at(tensor, static_cast<std::uint64_t>(element)));
}

/// The signs that identify keys, and the magnitude of q's elements; k's are 1.
struct Names {
  AttentionExtents e;
  int bits = 1;
  double size = 0.0;  ///< a power of two, with the sign of scale

  [[nodiscard]] double sign(std::int64_t batch, std::int64_t kv_head, std::int64_t key, std::int64_t x) const {
    const auto head = static_cast<std::uint64_t>(batch * e.hkv + kv_head);
    const std::uint64_t turned = mix(head * static_cast<std::uint64_t>(e.d) + static_cast<std::uint64_t>(x));
    const std::uint64_t bit = static_cast<std::uint64_t>(key) >> static_cast<unsigned>(x % bits);
    return ((bit ^ turned) & 1U) != 0 ? -1.0 : 1.0;
  }
  [[nodiscard]] double score(double scale) const { return std::fabs(scale * size) * static_cast<double>(e.d); }
};

struct Place {
  std::int64_t batch, row, head, x;
};
Place place_of(std::int64_t element, std::int64_t rows, std::int64_t heads, std::int64_t d) {
  return {element / d / heads / rows, element / d / heads % rows, element / d % heads, element % d};
}

}  // namespace

KeyRange keys_before(const Attention& attention, const AttentionExtents& e, std::int64_t query) {
  KeyRange seen{0, e.t};
  if (attention.causal) seen.end = std::max<std::int64_t>(0, query + e.t - e.s + 1);
  if (attention.window > 0) seen.first = std::max<std::int64_t>(0, seen.end - attention.window);
  return seen;
}

std::int64_t one_key(const Attention& attention, const AttentionExtents& e, std::int64_t batch, std::int64_t query) {
  if (attention.documents) return query;
  const KeyRange seen = keys_before(attention, e, query);
  if (seen.first == seen.end) return -1;
  const std::uint64_t drawn = mix(static_cast<std::uint64_t>(batch * e.s + query));
  return seen.first + static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(seen.end - seen.first));
}

std::vector<RevealingData> one_key_data(const CallSpecs& op) {
  const Attention attention = op.call.attributes.as<Attention>();
  const AttentionExtents e = extents_of(op.input("q").shape, op.input("k").shape, op.input("v").shape);
  Names names{e, std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(e.t - 1))))};
  const auto apart = static_cast<double>(2 * (e.d / names.bits));
  if (attention.softcap > 0.0 || attention.scale == 0.0 || apart == 0.0) return {};
  const double least = min_gap / (std::fabs(attention.scale) * apart);
  names.size = std::copysign(std::exp2(std::ceil(std::log2(least))), attention.scale);
  const double limit = 0.5 * largest_finite(op.input("q").dtype);
  if (!(std::fabs(names.size) <= limit)) return {};

  RevealingData data{"one key", {}, false, true};
  const auto give = [&](std::string_view name, std::function<double(std::int64_t)> value) {
    data.inputs.push_back({*position_of(op.call.kind.inputs, op.call.attributes, name), std::move(value)});
  };
  give("q", [=](std::int64_t element) {
    const Place at = place_of(element, e.s, e.hq, e.d);
    const std::int64_t key = one_key(attention, e, at.batch, at.row);
    return names.size * names.sign(at.batch, at.head / (e.hq / e.hkv), key, at.x);
  });
  give("k", [=](std::int64_t element) {
    const Place at = place_of(element, e.t, e.hkv, e.d);
    return names.sign(at.batch, at.head, at.row, at.x);
  });
  give("v", [](std::int64_t element) { return odd_element(of_v, element); });
  if (op.call.kind == attention_backward_kind) {
    give("do", [](std::int64_t element) { return odd_element(of_do, element); });
    // The key's v except for one element, so that do (v - o), a factor of dq and dk, is a small number.
    give("o", [=](std::int64_t element) {
      const Place at = place_of(element, e.s, e.hq, e.d_v);
      const std::int64_t key = one_key(attention, e, at.batch, at.row), head = at.head / (e.hq / e.hkv);
      const double v = odd_element(of_v, ((at.batch * e.t + key) * e.hkv + head) * e.d_v + at.x);
      const std::uint64_t drawn = hash_at(of_o, static_cast<std::uint64_t>(element / e.d_v));
      const bool differs = drawn % static_cast<std::uint64_t>(e.d_v) == static_cast<std::uint64_t>(at.x);
      return differs ? (v > 0.0 ? v - 4.0 : v + 4.0) : v;
    });
    give("lse", [score = names.score(attention.scale)](std::int64_t) { return score; });
  }
  return {data};
}

std::vector<RevealingData> scores_far_from_zero(const CallSpecs& op) {
  constexpr double wanted = 200.0;  // by choice: exp overflows in f32, and exp(-200) is 0
  const Attention attention = op.call.attributes.as<Attention>();
  const AttentionExtents e = extents_of(op.input("q").shape, op.input("k").shape, op.input("v").shape);
  const bool backward = op.call.kind == attention_backward_kind;
  if (attention.scale == 0.0 || (backward && attention.documents)) return {};
  const double size =
      std::exp2(std::round(std::log2(wanted / (std::fabs(attention.scale) * static_cast<double>(e.d)))));
  if (!(size <= largest_finite(op.input("q").dtype))) return {};
  // The value of q's elements; those of k are about 1.
  const auto product = [=](std::int64_t row) {
    // With a sink and scores below 0, lse would be the sink's, unlike the one given below.
    const bool below = row % 2 != 0 && !(backward && attention.sinks);
    return std::copysign(size, below ? -attention.scale : attention.scale);
  };
  RevealingData data{"scores far from 0", {}};
  const auto give = [&](std::string_view name, std::function<double(std::int64_t)> value) {
    data.inputs.push_back({*position_of(op.call.kind.inputs, op.call.attributes, name), std::move(value)});
  };
  give("q", [=](std::int64_t element) { return product(place_of(element, e.s, e.hq, e.d).row); });
  give("k", [=](std::int64_t element) {
    // In a backward each key's elements must add up to d, so neighbours deviate from 1 by opposite amounts.
    const bool alone = backward && element % e.d == e.d - 1 && e.d % 2 != 0;
    const double odd = odd_number(mix(static_cast<std::uint64_t>(backward ? element - element % e.d % 2 : element)));
    return alone ? 1.0 : 1.0 + (backward && element % e.d % 2 != 0 ? -odd : odd) / 32.0;
  });
  give("v", [](std::int64_t element) { return odd_element(of_v, element); });
  if (backward) {
    give("do", [](std::int64_t element) { return odd_element(of_do, element); });
    give("o", [](std::int64_t element) { return odd_element(of_o, element); });
    give("lse", [=](std::int64_t element) {
      const std::int64_t row = element % e.s;
      double score = attention.scale * product(row) * static_cast<double>(e.d);
      if (attention.softcap != 0.0) score = attention.softcap * std::tanh(score / attention.softcap);
      const KeyRange keys = keys_before(attention, e, row);
      if (keys.first == keys.end && attention.sinks)
        return score;  // lse is the sink's, far above: exp(sink - lse) is 0
      return score + std::log(static_cast<double>(keys.end - keys.first));
    });
  }
  return {data};
}

void allow_for_omitted_terms(std::span<Expected> judged, std::int64_t terms) {
  // f32's smallest normal number, times do (v - o) q, small whole numbers.
  for (Expected& one : judged) one.bound += static_cast<double>(terms) * 0x1p-126 * 0x1p20;
}

}  // namespace gpubench
