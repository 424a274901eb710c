// How a plan adds up products, read from sums of a huge number, a small one and the huge one's opposite. Of +2^E, s and
// -2^E, in whatever order they meet, s is left if the sum holds E bits below the huge number's leading one. Where s is
// lost first says how many bits a sum keeps; how that depends on how far apart along k the three are says the rest:
//   - three neighbours that lose s wherever among them it is are added at once: no tree of two-term sums does that;
//   - a sum that goes through a narrower register between distant k's is stored there as a partial sum;
//   - where a small s survives only if it is far enough from both huge ones, the register is emptied in between.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "harness/parity/probe_data.h"

namespace gpubench {

enum class SumRounding { nearest, cut };

/// What is empty could not be read: K or a type's range is too small, or the result has no such thing.
struct SumReading {
  /// Small whole numbers come out exactly and what is lost is lost whole: the output is a plain sum of products. Where
  /// not (a transform such as Winograd's is around it), nothing else is read.
  bool plain = true;
  std::optional<int> bits{};       ///< significant bits of a running sum
  std::optional<int> kept{};       ///< at most so many, of whatever is added: it may be all that a small product shows
  std::optional<int> more_than{};  ///< where no bit was lost: it has more than these
  std::optional<SumRounding> rounding{};    ///< of a running sum
  int at_once_least = 1, at_once_most = 0;  ///< products that are added at once; `most` is 0 where they may be more
  std::optional<int> fraction{};  ///< where several are: bits kept behind the leading one of the largest of them
  std::optional<std::int64_t> emptied_every{};  ///< products after which a narrow sum is added to a wider one
  std::int64_t not_emptied_within = 0;          ///< products of which a narrow sum was not
  std::optional<int> outer_bits{};              ///< of that
  std::optional<int> partial_bits{};  ///< significant bits of partial sums of distant k's, where these are fewer

  [[nodiscard]] std::optional<int> at_once() const {
    return at_once_least == at_once_most ? std::optional(at_once_most) : std::nullopt;
  }
};

/// One launch. The data depend on nothing but the call, its product and the seed.
class SumProbe {
 public:
  /// Both must outlive it. A product of fewer than 3 positions along k, or of a single line, has no reading.
  SumProbe(const CallSpecs& op, const OpProduct& product, std::uint64_t seed);
  ~SumProbe();
  SumProbe(SumProbe&&) noexcept;
  SumProbe& operator=(SumProbe&&) = delete;

  /// Null where there is nothing to launch.
  [[nodiscard]] ProbeData* data();
  /// Call once the launch's results have been taken.
  [[nodiscard]] SumReading read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

}  // namespace gpubench
