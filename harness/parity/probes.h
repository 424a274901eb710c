// Readings of a plan's arithmetic: its sums, single numbers, and the order of addition.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/parity/probe_data.h"
#include "harness/parity/summation_tree.h"

namespace gpubench {

// How a plan adds up products, read from sums of +2^E, s and -2^E. In any order of the three, s is left if the sum
// holds E bits below the huge number's leading one. The first lost s gives the bits of a sum; the dependence on
// distances along k gives the rest:
//   - three neighbours that always lose s are added at once: no tree of two-term sums does that;
//   - a sum that passes a narrower register between distant k is stored there as a partial sum;
//   - if a small s survives only far enough from both huge numbers, the register is emptied in between.

enum class SumRounding { nearest, cut };

/// Empty where K or a type's range is too small, or where the result has no such property.
struct SumReading {
  /// False where small whole numbers don't come out exactly or are lost in part: the output is not a plain sum of
  /// products (a transform such as Winograd's). Then nothing else is read.
  bool plain = true;
  std::optional<int> bits{};                ///< significant bits of a running sum
  std::optional<int> kept{};                ///< at most this many, of any sum: may be all that a small product shows
  std::optional<int> more_than{};           ///< where no bit was lost: the sum has more than these
  std::optional<SumRounding> rounding{};    ///< of a running sum
  int at_once_least = 1, at_once_most = 0;  ///< products added at once; `most` is 0 where unlimited by the reading
  std::optional<int> fraction{};            ///< if several at once: bits kept below the leading one of the largest
  std::optional<std::int64_t> emptied_every{};  ///< products after which a narrow sum is added to a wider one
  std::int64_t not_emptied_within = 0;          ///< products within which a narrow sum was not emptied
  std::optional<int> outer_bits{};              ///< of the wider sum
  std::optional<int> partial_bits{};            ///< significant bits of partial sums over distant k, where fewer

  [[nodiscard]] std::optional<int> at_once() const {
    return at_once_least == at_once_most ? std::optional(at_once_most) : std::nullopt;
  }
};

/// One launch. The data depend only on the call, its product and the seed.
class SumProbe {
 public:
  /// Both must outlive it. A product of fewer than 3 positions along k, or of a single line, has no reading.
  SumProbe(const CallSpecs& op, const OpProduct& product, std::uint64_t seed);
  ~SumProbe();
  SumProbe(SumProbe&&) noexcept;
  SumProbe& operator=(SumProbe&&) = delete;

  /// Null if there is no launch.
  [[nodiscard]] ProbeData* data();
  /// Call once the launch's results have been taken.
  [[nodiscard]] SumReading read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

// What a plan does with single numbers: bits of its inputs, rounding of products before addition, rounding of the sum
// to the output's type, denormals, NaN and infinities.

enum class Narrowing { to_even, to_away, to_zero };

/// `value` with `bits` significant bits.
[[nodiscard]] double narrowed(double value, int bits, Narrowing how);

struct InputWidth {
  enum class Kind { exact, tf32, bf16, two_bf16, fewer_bits, three_bf16, unknown };
  Kind kind = Kind::unknown;
  int bits = 0;       ///< significant bits that are multiplied; 0 for `unknown`
  std::string words;  ///< "exact", "tf32, cut", "two bf16", "14 bits, rounded to nearest even"
  friend bool operator==(const InputWidth&, const InputWidth&) = default;
};

/// Numbers of the type that use all of its bits, or are halfway between neighbours in tf32 or bf16, to read how ties
/// round. `key`: seed of the random ones.
[[nodiscard]] std::vector<double> width_numbers(DType type, const Exponents& range, std::uint64_t key);
inline constexpr int width_numbers_tried = 16;

/// The width that explains `results`, the products of `numbers` and 1; `unknown` where none does.
[[nodiscard]] InputWidth width_of(DType type, const std::vector<double>& numbers, const std::vector<double>& results);

enum class StoreRounding { nearest_even, nearest_away, toward_zero, other };
enum class Overflow { infinity, saturated, nan, other };

/// Empty where a value could not be read or does not exist in these types.
struct ValueReading {
  std::optional<InputWidth> a{}, b{};
  std::optional<bool> fused{};                               ///< products are added before rounding (f32, f64)
  std::optional<StoreRounding> store{};                      ///< of a sum with more bits than the output's type
  std::optional<bool> keeps_a{}, keeps_b{}, keeps_output{};  ///< denormals; else flushed to zero
  std::optional<Overflow> overflow{};                        ///< of a sum beyond the output's range
  /// Departures from IEEE 754: "NaN x 0 is not NaN"; nothing where none could be tried.
  std::optional<std::vector<std::string>> departures{};
};

class ValueProbe {
 public:
  /// `data` must outlive it. `sum_bits`: bits of a running sum by SumReading, if read.
  ValueProbe(ProbeData& data, std::uint64_t seed, std::optional<int> sum_bits);
  ~ValueProbe();
  ValueProbe(ValueProbe&&) noexcept;
  ValueProbe& operator=(ValueProbe&&) = delete;

  /// The first line that it does not use.
  [[nodiscard]] std::int64_t next_line() const;
  /// Call once the launch's results have been taken.
  [[nodiscard]] ValueReading read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

// The order in which a plan adds up its products (harness/parity/summation_tree.h). Row i of a has a huge number at k =
// i, column j of b its opposite at k = j, and all other numbers are ones: the sum at (i, j) keeps the ones outside the
// smallest subtree that holds both i and j. One launch gives all pairs.
//
// If a type's range is too small for this, each pair has a separate row and column, and both operands share the huge
// number.

inline constexpr std::int64_t max_ordered = 512;

struct OrderReading {
  std::vector<std::int64_t> places;   ///< along k, ascending
  std::optional<SummationTree> tree;  ///< none where no tree explains the results
  [[nodiscard]] std::string words() const;
};

class OrderProbe {
 public:
  /// `data` must outlive it. `sums`: readings of the sums, which determine the huge number. `denormals`: denormal
  /// inputs are kept. `most`: positions of k.
  OrderProbe(ProbeData& data, std::int64_t first_line, const SumReading& sums, bool denormals, std::int64_t most);
  ~OrderProbe();
  OrderProbe(OrderProbe&&) noexcept;
  OrderProbe& operator=(OrderProbe&&) = delete;

  /// False if there are too few lines, or if no number is huge enough.
  [[nodiscard]] bool usable() const { return design_ != nullptr; }
  /// Whether the lines from this one on suffice: one for each position, or many where there are no more.
  [[nodiscard]] static bool suffice(const ProbeData& data, std::int64_t first_line, std::int64_t most);
  /// Call once the launch's results have been taken. All of k if it fits; else the first positions, and some of all of
  /// k.
  [[nodiscard]] std::vector<OrderReading> read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

/// Readings of one product in words: "in order of k"; "the first 64: 16 at once, in order; every 16th: in order".
[[nodiscard]] std::string order_text(const std::vector<OrderReading>& readings, std::int64_t k);

}  // namespace gpubench
