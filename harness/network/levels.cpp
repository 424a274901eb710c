#include "harness/network/levels.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace gpubench {
namespace {

constexpr double giga = 1e9, max_gb_per_s = 1e9;
constexpr std::int64_t max_devices = 1 << 20;

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace

Network parse_network(const NetworkLevel& node, std::span<const std::string> beyond) {
  Network network{{node}};
  for (const std::string& word : beyond) {
    const bool last = &word == &beyond.back();
    const std::string_view text = word;
    const std::size_t colon = text.find(':');
    const auto devices = colon == std::string_view::npos ? all_devices : number_in<std::int64_t>(text.substr(0, colon));
    const auto gb_per_s = number_in<double>(text.substr(colon == std::string_view::npos ? 0 : colon + 1));
    const bool is_level = devices && gb_per_s && *gb_per_s > 0.0 && *gb_per_s <= max_gb_per_s;
    if (!is_level || last != (colon == std::string_view::npos)) {
      throw std::invalid_argument(
          fmt::format("'{}' is not {}; expected GB/s beyond nodes, or by size and then beyond, such as 50 or 256:50,25",
                      word, last ? "GB/s" : "GPUS:GB/S"));
    }
    const std::int64_t below = network.levels.back().devices;
    if (!last && (*devices <= below || *devices > max_devices || *devices % below != 0)) {
      throw std::invalid_argument(
          fmt::format("'{}' is not a larger multiple of the {} GPUs below; expected a multiple up "
                      "to {}",
                      word, below, max_devices));
    }
    network.levels.push_back({*devices, *gb_per_s * giga});
  }
  return network;
}

std::string to_string(const Network& network) {
  std::string text;
  for (const NetworkLevel& level : network.levels) {
    const double gb_per_s = level.bytes_per_s / giga;
    if (text.empty())
      text = fmt::format("{} GB/s within {} devices", gb_per_s, level.devices);
    else if (level.devices == all_devices)
      text += fmt::format(", {} beyond", gb_per_s);
    else
      text += fmt::format(", {} within {}", gb_per_s, level.devices);
  }
  return text;
}

std::string level_name(const Network& network, std::size_t level) {
  if (level == 0) return "node";
  const std::int64_t devices = network.levels[level].devices;
  if (devices != all_devices) return fmt::format("to {}", devices);
  return level == 1 ? "network" : fmt::format("beyond {}", network.levels[level - 1].devices);
}

std::vector<std::int64_t> domains_of(const Scattered& group, const Network& network) {
  const std::int64_t node = network.levels.front().devices;
  const std::int64_t in_node = node / group.apart, nodes_apart = divide_up(group.apart, node);
  std::vector<std::int64_t> domains;
  for (const NetworkLevel& level : network.levels) {
    const std::int64_t nodes = level.devices / node;
    const std::int64_t room = in_node > 0 ? in_node * nodes : nodes / nodes_apart;
    const bool all = level.devices == all_devices;
    domains.push_back(all ? 1 : room > 1 ? divide_up(group.members, room) : group.members);
  }
  return domains;
}

InNodes in_nodes(const Scattered& group, const Network& network) {
  const std::int64_t nodes = domains_of(group, network).front();
  return {static_cast<double>(group.members), static_cast<double>(nodes),
          static_cast<double>(divide_up(group.members, nodes))};
}

std::vector<double> seconds_by_level(double bytes, const Scattered& group, const Network& network) {
  std::vector<double> seconds;
  const std::vector<std::int64_t> domains = domains_of(group, network);
  std::int64_t below = group.members;  // domains of the level below; at first one per member
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const auto together = static_cast<double>(divide_up(below, domains[i]));
    const std::int64_t fewest = group.members / below;
    const double left = bytes / static_cast<double>(fewest);
    seconds.push_back(left * (together - 1.0) / together / network.levels[i].bytes_per_s);
    below = domains[i];
  }
  return seconds;
}

}  // namespace gpubench
