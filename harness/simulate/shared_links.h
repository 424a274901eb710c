// Links that several transfers use at the same time, in virtual time: a fluid in max-min fair shares (Bertsekas and
// Gallager, "Data Networks", section 6.5.2).
//
// A transfer uses as much of each of its links as of the others, and alone its demand. Where links are crowded, the
// shares of all grow alike until one has its demand, or a link is full, which settles those that are on it. Rates
// change only when a transfer begins or ends, and only of those that crowded links connect with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace gpubench {

class SharedLinks {
 public:
  /// `links`: numbers from 0, each once. `demand`: of each link, what the transfer uses while nothing slows it down:
  /// above 0, to 1. `end_s`: when it then ends.
  void begin(std::size_t transfer, std::vector<int> links, double demand, double end_s);
  void end(std::size_t transfer);
  /// Once all that begin or end at `now` have done so. Returns the transfers whose end has changed.
  std::vector<std::size_t> settle(double now);
  /// As long as no other begins or ends.
  [[nodiscard]] double end_s(std::size_t transfer) const { return transfers_.at(transfer).end_s; }

 private:
  struct Transfer {
    std::vector<int> links;
    double demand = 1.0, end_s = 0.0;
    double rate = 1.0;  // of that alone
    double share = 0.0;
    std::uint64_t seen = 0;  // by which settle()
  };
  struct Link {
    std::vector<std::size_t> transfers{};
    bool crowded = false;  // more is asked of it than it has
    double free = 1.0;     // while shares are worked out, as is the next
    int undecided = 0;
    std::uint64_t seen = 0;
  };
  [[nodiscard]] Link& link(int number) { return links_[static_cast<std::size_t>(number)]; }
  /// Those that share crowded links with what has begun or ended, and with each other; `crowded`: these links.
  std::vector<std::size_t> connected(std::vector<int>& crowded);
  void share_out(const std::vector<std::size_t>& transfers, const std::vector<int>& crowded);
  void decide(Transfer& transfer, double share);

  std::unordered_map<std::size_t, Transfer> transfers_;
  std::vector<Link> links_;
  std::vector<int> touched_;  // since the last settle()
  std::uint64_t settled_ = 0;
};

}  // namespace gpubench
