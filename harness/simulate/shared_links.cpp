#include "harness/simulate/shared_links.h"

#include <algorithm>
#include <utility>

namespace gpubench {

void SharedLinks::begin(std::size_t transfer, std::vector<int> links, double demand, double end_s) {
  for (const int number : links) {
    if (links_.size() <= static_cast<std::size_t>(number)) links_.resize(static_cast<std::size_t>(number) + 1);
    link(number).transfers.push_back(transfer);
    touched_.push_back(number);
  }
  transfers_.emplace(transfer, Transfer{std::move(links), demand, end_s});
}

void SharedLinks::end(std::size_t transfer) {
  for (const int number : transfers_.at(transfer).links) {
    std::erase(link(number).transfers, transfer);
    touched_.push_back(number);
  }
  transfers_.erase(transfer);
}

std::vector<std::size_t> SharedLinks::settle(double now) {
  std::vector<int> crowded;
  const std::vector<std::size_t> transfers = connected(crowded);
  share_out(transfers, crowded);
  std::vector<std::size_t> changed;
  for (const std::size_t id : transfers) {
    Transfer& transfer = transfers_.at(id);
    const double rate = transfer.share / transfer.demand;
    if (rate == transfer.rate) continue;
    transfer.end_s = now + (transfer.end_s - now) * transfer.rate / rate;
    transfer.rate = rate;
    changed.push_back(id);
  }
  return changed;
}

std::vector<std::size_t> SharedLinks::connected(std::vector<int>& crowded) {
  constexpr double rounding = 1e-9;  // the sum of eight eighths is not crowded
  ++settled_;
  std::vector<std::size_t> found;
  const auto visit = [&](Link& of) {
    for (const std::size_t id : of.transfers) {
      Transfer& transfer = transfers_.at(id);
      if (std::exchange(transfer.seen, settled_) != settled_) found.push_back(id);
    }
  };
  for (const int number : touched_) {
    Link& of = link(number);
    double demand = 0.0;
    for (const std::size_t id : of.transfers) demand += transfers_.at(id).demand;
    const bool was_crowded = std::exchange(of.crowded, demand > 1.0 + rounding);
    if (was_crowded || of.crowded) visit(of);
  }
  touched_.clear();
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const int number : transfers_.at(found[i]).links) {
      Link& of = link(number);
      if (!of.crowded || std::exchange(of.seen, settled_) == settled_) continue;
      crowded.push_back(number);
      visit(of);
    }
  }
  return found;
}

void SharedLinks::decide(Transfer& transfer, double share) {
  transfer.share = share;
  for (const int number : transfer.links) {
    link(number).free -= share;
    --link(number).undecided;
  }
}

void SharedLinks::share_out(const std::vector<std::size_t>& transfers, const std::vector<int>& crowded) {
  std::vector<Transfer*> undecided;
  for (const std::size_t id : transfers) {
    Transfer& transfer = transfers_.at(id);
    transfer.share = 0.0;
    undecided.push_back(&transfer);
  }
  for (const int number : crowded) {
    link(number).free = 1.0;
    link(number).undecided = static_cast<int>(link(number).transfers.size());
  }
  const auto each_gets = [&](int number) { return link(number).free / link(number).undecided; };
  while (!undecided.empty()) {
    double least = 1.0;
    for (const int number : crowded) {
      if (link(number).undecided > 0) least = std::min(least, each_gets(number));
    }
    // Transfers with a smaller demand get it, which leaves more for the others.
    bool any_modest = false;
    for (Transfer* const transfer : undecided) {
      if (transfer->demand > least) continue;
      decide(*transfer, transfer->demand);
      any_modest = true;
    }
    if (!any_modest) {
      std::vector<int> full;
      for (const int number : crowded) {
        if (link(number).undecided > 0 && each_gets(number) <= least) full.push_back(number);
      }
      for (const int number : full) {
        for (const std::size_t id : link(number).transfers) {
          Transfer& transfer = transfers_.at(id);
          if (transfer.share == 0.0) decide(transfer, least);
        }
      }
    }
    std::erase_if(undecided, [](const Transfer* transfer) { return transfer->share > 0.0; });
  }
}

}  // namespace gpubench
