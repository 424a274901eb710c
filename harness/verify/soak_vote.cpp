#include "harness/verify/soak.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace gpubench {
namespace {

// "device 2", "devices 0 and 1", "devices 0, 1 and 2".
std::string devices_text(const std::vector<std::size_t>& devices) {
  if (devices.size() == 1) return fmt::format("device {}", devices.front());
  return fmt::format("devices {} and {}", fmt::join(devices.begin(), devices.end() - 1, ", "), devices.back());
}

std::vector<std::uint64_t> prints_of(const std::vector<SoakedValue>& values) {
  std::vector<std::uint64_t> prints;
  for (const SoakedValue& value : values) prints.push_back(value.print);
  return prints;
}

// `a` and `b` must be of equal programs, and differ.
const SoakedValue& first_that_differs(const std::vector<SoakedValue>& a, const std::vector<SoakedValue>& b) {
  const auto same = [](const SoakedValue& x, const SoakedValue& y) { return x.print == y.print; };
  return *std::ranges::mismatch(a, b, same).in1;
}

// The bits of most other devices; empty if two different results are equally frequent.
std::optional<std::vector<std::uint64_t>> bits_of_others(
    const std::map<std::vector<std::uint64_t>, std::vector<std::size_t>>& by_bits, std::size_t device) {
  std::optional<std::vector<std::uint64_t>> most;
  std::ptrdiff_t max_often = 0;
  for (const auto& [bits, devices] : by_bits) {
    const std::ptrdiff_t often = std::ranges::ssize(devices) - std::ranges::count(devices, device);
    if (often == max_often) most.reset();
    if (often <= max_often) continue;
    max_often = often;
    most = bits;
  }
  return most;
}

std::string value_text(const SoakedValue& value) {
  return fmt::format("op '{}' ({}, by {}), '{}'", value.op, value.kind, value.implementation, value.tensor);
}

}  // namespace

std::string model_of(const DeviceInfo& device) {
  std::string text = fmt::format("{}, {} unit{}", device.name, device.units, device.units == 1 ? "" : "s");
  for (const auto& [library, version] : device.libraries) text += fmt::format(", {} {}", library, version);
  return text;
}

std::vector<std::string> SoakVote::judged(std::size_t device, const JudgedLaunch& launch) {
  const Launch key{launch.case_id, launch.epoch};
  Ballot& ballot = ballots_[key];
  ballot.left[device] = launch.values;
  return is_complete(ballot) ? vote(key, ballot) : std::vector<std::string>();
}

std::vector<std::string> SoakVote::diverged(std::size_t device, const Divergence& divergence) {
  const auto found = ballots_.find({divergence.case_id, divergence.epoch});
  if (found == ballots_.end()) return {};
  if (!found->second.is_voted) {
    found->second.waiting.emplace_back(device, divergence);
    return {};
  }
  std::string text = verdict_on(device, divergence, found->second);
  return text.empty() ? std::vector<std::string>() : std::vector{std::move(text)};
}

std::vector<std::string> SoakVote::ended(std::size_t device) {
  ended_.insert(device);
  std::vector<std::string> all;
  for (auto& [launch, ballot] : ballots_) {
    if (ballot.is_voted || !is_complete(ballot)) continue;
    for (std::string& text : vote(launch, ballot)) all.push_back(std::move(text));
  }
  return all;
}

bool SoakVote::is_complete(const Ballot& ballot) const {
  for (std::size_t device = 0; device < models_.size(); ++device) {
    if (!ended_.contains(device) && !ballot.left.contains(device)) return false;
  }
  return true;
}

// By model, then by the implementations of the ops. Groups of one add to not_compared_.
std::vector<SoakVote::Devices> SoakVote::comparable(const Launch& launch, const Ballot& ballot) {
  std::map<std::string, Devices> by_model;
  for (const auto& [device, values] : ballot.left) by_model[models_.at(device)].push_back(device);
  std::vector<Devices> groups;
  for (const auto& [model, devices] : by_model) {
    if (devices.size() == 1 && ballot.left.size() > 1) {
      not_compared_.insert(fmt::format("device {} is another model than the others, or has other libraries: {}",
                                       devices.front(), model));
      continue;
    }
    std::vector<Devices> alike;
    for (const std::size_t device : devices) {
      const auto same = [&](const Devices& group) {
        return std::ranges::equal(ballot.left.at(group.front()), ballot.left.at(device),
                                  [](const SoakedValue& a, const SoakedValue& b) {
                                    return a.op == b.op && a.tensor == b.tensor && a.implementation == b.implementation;
                                  });
      };
      const auto group = std::ranges::find_if(alike, same);
      if (group == alike.end()) {
        alike.push_back({device});
      } else {
        group->push_back(device);
      }
    }
    for (const Devices& group : alike) {
      if (group.size() > 1)
        groups.push_back(group);
      else if (alike.size() > 1)
        not_compared_.insert(
            fmt::format("{}: device {} has other implementations than the others", launch.first, group.front()));
    }
  }
  return groups;
}

std::vector<std::string> SoakVote::vote(const Launch& launch, Ballot& ballot) {
  std::vector<std::string> found;
  for (const auto& [device, values] : ballot.left) ballot.prints[device] = prints_of(values);
  for (const Devices& alike : comparable(launch, ballot)) vote_among(alike, launch, ballot, found);
  ballot.is_voted = true;
  for (const auto& [device, divergence] : ballot.waiting) {
    if (std::string text = verdict_on(device, divergence, ballot); !text.empty()) found.push_back(std::move(text));
  }
  ballot.waiting.clear();
  ballot.left.clear();
  ballots_.erase({launch.first, launch.second - 2});
  return found;
}

void SoakVote::vote_among(const Devices& alike, const Launch& launch, Ballot& ballot, std::vector<std::string>& found) {
  ++voted_;
  std::map<std::vector<std::uint64_t>, Devices> by_bits;
  for (const std::size_t device : alike) by_bits[ballot.prints.at(device)].push_back(device);
  const auto most = std::ranges::max_element(by_bits, {}, [](const auto& one) { return one.second.size(); });
  const Devices& majority = most->second;
  const bool is_majority = 2 * majority.size() > alike.size();
  for (const std::size_t device : alike) {
    if (const auto bits = bits_of_others(by_bits, device)) ballot.others[device] = *bits;
  }
  if (by_bits.size() == 1) return;
  const std::string where = fmt::format("epoch {}, {}: ", launch.second, launch.first);
  if (!is_majority) {
    const std::vector<SoakedValue>& first = ballot.left.at(by_bits.begin()->second.front());
    const std::vector<SoakedValue>& second = ballot.left.at(std::next(by_bits.begin())->second.front());
    found.push_back(fmt::format("{}{} differ in {}: there is no majority to say which is right", where,
                                devices_text(alike), value_text(first_that_differs(first, second))));
    return;
  }
  for (const auto& [bits, devices] : by_bits) {
    if (&devices == &majority) continue;
    for (const std::size_t device : devices) {
      const bool all_others = majority.size() + 1 == alike.size();
      found.push_back(
          fmt::format("{}device {} differs from {}{}{} in {}", where, device, all_others ? "the other " : "",
                      majority.size(), all_others ? "" : " that agree",
                      value_text(first_that_differs(ballot.left.at(device), ballot.left.at(majority.front())))));
    }
  }
}

std::string SoakVote::verdict_on(std::size_t device, const Divergence& divergence, const Ballot& ballot) {
  const auto own = ballot.prints.find(device);
  const auto others = ballot.others.find(device);
  if (own == ballot.prints.end() || others == ballot.others.end()) return {};
  const std::string where = fmt::format("epoch {}, {}: ", divergence.epoch, divergence.case_id);
  if (own->second == others->second || divergence.left != others->second) return {};
  return fmt::format("{}device {} left in a later launch what the others have: its judged one is wrong", where, device);
}

}  // namespace gpubench
