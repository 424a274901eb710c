// Links shared by several transfers in virtual time: max-min fair fluid shares (Bertsekas and Gallager, "Data
// Networks", section 6.5.2). A transfer has the same share of each of its links, at most its demand. Rates change only
// when a transfer begins or ends, and only for transfers connected to it by crowded links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace gpubench {

class SharedLinks {
 public:
  /// `links`: numbers from 0, each once. `demand`: share of each link without contention, in (0, 1]. `end_s`: the end
  /// without contention.
  void begin(std::size_t transfer, std::vector<int> links, double demand, double end_s);
  void end(std::size_t transfer);
  /// Must be called after all begin() and end() of the time `now`. Returns the transfers whose end has changed.
  std::vector<std::size_t> settle(double now);
  /// Valid until another transfer begins or ends.
  [[nodiscard]] double end_s(std::size_t transfer) const { return transfers_.at(transfer).end_s; }

 private:
  struct Transfer {
    std::vector<int> links;
    double demand = 1.0, end_s = 0.0;
    double rate = 1.0;  // relative to no contention
    double share = 0.0;
    std::uint64_t seen = 0;
  };
  struct Link {
    std::vector<std::size_t> transfers{};
    bool crowded = false;  // demand above 1
    double free = 1.0;
    int undecided = 0;
    std::uint64_t seen = 0;
  };
  [[nodiscard]] Link& link(int number) { return links_[static_cast<std::size_t>(number)]; }
  /// The transfers connected by crowded links to those that began or ended; `crowded`: these links.
  std::vector<std::size_t> connected(std::vector<int>& crowded);
  void share_out(const std::vector<std::size_t>& transfers, const std::vector<int>& crowded);
  void decide(Transfer& transfer, double share);

  std::unordered_map<std::size_t, Transfer> transfers_;
  std::vector<Link> links_;
  std::vector<int> touched_;
  std::uint64_t settled_ = 0;
};

}  // namespace gpubench
