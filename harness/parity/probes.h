// What a plan's results show of its arithmetic: its sums, what it makes of single numbers, and the order in which it
// adds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/parity/probe_data.h"
#include "harness/parity/summation_tree.h"

namespace gpubench {

// How a plan adds up products, read from sums of a huge number, a small one and the huge one's opposite. Of +2^E, s and
// -2^E, in whatever order they meet, s is left if the sum holds E bits below the huge number's leading one. Where s is
// lost first says how many bits a sum keeps; how that depends on how far apart along k the three are says the rest:
//   - three neighbours that lose s wherever among them it is are added at once: no tree of two-term sums does that;
//   - a sum that goes through a narrower register between distant k's is stored there as a partial sum;
//   - where a small s survives only if it is far enough from both huge ones, the register is emptied in between.

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

// What a plan makes of single numbers: how many bits of its inputs it multiplies, whether products are rounded before
// they are added, how the sum is rounded to the output's type, and what becomes of denormals, NaN and infinities.

/// How a number is brought to fewer bits.
enum class Narrowing { to_even, to_away, to_zero };

/// `value` with so many significant bits.
[[nodiscard]] double narrowed(double value, int bits, Narrowing how);

/// Which part of an operand's numbers is multiplied.
struct InputWidth {
  enum class Kind { exact, tf32, bf16, two_bf16, fewer_bits, three_bf16, unknown };
  Kind kind = Kind::unknown;
  int bits = 0;       ///< significant ones that are multiplied; of `unknown` 0
  std::string words;  ///< "exact", "tf32, cut", "two bf16", "14 bits, rounded to nearest even"
  friend bool operator==(const InputWidth&, const InputWidth&) = default;
};

/// Numbers of the type that show it: they use all of its bits, or are halfway between neighbours in tf32 or bf16, which
/// tells how ties go. `key`: of the random ones.
[[nodiscard]] std::vector<double> width_numbers(DType type, const Exponents& range, std::uint64_t key);
inline constexpr int width_numbers_tried = 16;

/// What the plan made of these numbers of the type, each times 1. `unknown` where no width explains all of them.
[[nodiscard]] InputWidth width_of(DType type, const std::vector<double>& numbers, const std::vector<double>& results);

enum class StoreRounding { nearest_even, nearest_away, toward_zero, other };
enum class Overflow { infinity, saturated, nan, other };

/// What is empty could not be read, or does not exist in these types.
struct ValueReading {
  std::optional<InputWidth> a{}, b{};
  std::optional<bool> fused{};                               ///< products are added before they are rounded (f32, f64)
  std::optional<StoreRounding> store{};                      ///< of a sum with more bits than the output's type
  std::optional<bool> keeps_a{}, keeps_b{}, keeps_output{};  ///< denormals; else they become zero
  std::optional<Overflow> overflow{};                        ///< what a sum beyond the output's range becomes
  /// Departures from IEEE 754: "NaN x 0 is not NaN"; none where nothing could be tried.
  std::optional<std::vector<std::string>> departures{};
};

/// Its part of a launch: the first lines of both sides.
class ValueProbe {
 public:
  /// `data` must outlive it. `sum_bits`: what SumReading says of a running sum, if it says anything.
  ValueProbe(ProbeData& data, std::uint64_t seed, std::optional<int> sum_bits);
  ~ValueProbe();
  ValueProbe(ValueProbe&&) noexcept;
  ValueProbe& operator=(ValueProbe&&) = delete;

  /// Lines that it does not use, from this one on.
  [[nodiscard]] std::int64_t next_line() const;
  /// Call once the launch's results have been taken.
  [[nodiscard]] ValueReading read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

// The order in which a plan adds up its products (harness/parity/summation_tree.h). Row i of a has a huge number at k =
// i, column j of b its opposite at k = j, and all other numbers are ones: of the sum at (i, j) those ones are left that
// are not in the smallest subtree which holds both i and j. One launch gives all pairs.
//
// Types of a small range can't hold numbers so far apart in one operand. There each pair has a row and a column of its
// own, and both operands share the huge number.

/// No tree is read of more positions of k.
inline constexpr std::int64_t max_ordered = 512;

/// The order of some positions of k.
struct OrderReading {
  std::vector<std::int64_t> places;   ///< along k, ascending
  std::optional<SummationTree> tree;  ///< none where no tree explains the results
  [[nodiscard]] std::string words() const;
};

/// Its part of a launch: lines of both sides, from a first one on.
class OrderProbe {
 public:
  /// `data` must outlive it. `sums`: what was read of the sums: how huge a number must be. `denormals`: those of the
  /// inputs are kept. `most`: positions of k.
  OrderProbe(ProbeData& data, std::int64_t first_line, const SumReading& sums, bool denormals, std::int64_t most);
  ~OrderProbe();
  OrderProbe(OrderProbe&&) noexcept;
  OrderProbe& operator=(OrderProbe&&) = delete;

  /// Whether there is something to launch, and neither too few lines nor no number that is huge enough.
  [[nodiscard]] bool usable() const { return design_ != nullptr; }
  /// Whether lines from this one on are as good as all: as many as there are positions, or still many where all are
  /// fewer than that.
  [[nodiscard]] static bool suffice(const ProbeData& data, std::int64_t first_line, std::int64_t most);
  /// Call once the launch's results have been taken. All of k if it fits; else the first ones, and some of all of k.
  [[nodiscard]] std::vector<OrderReading> read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

/// What the readings say of one product: "in order of k"; "the first 64: 16 at once, in order; every 16th: in order".
[[nodiscard]] std::string order_text(const std::vector<OrderReading>& readings, std::int64_t k);

}  // namespace gpubench
