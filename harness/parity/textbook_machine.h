// A whole program run by the textbook on the host: slow, and right. For end-to-end parity and for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// The memory of a program's storages on the host, and the textbook as the machine that runs on it.
class TextbookMachine {
 public:
  explicit TextbookMachine(const Program& program);

  /// Fills the sources as the harness does. `types`: the program whose storage types the values are first rounded to;
  /// for a widened program the original one, so that both see the same inputs.
  void fill_sources(std::string_view case_key, std::uint64_t seed, const Program& types);

  /// Runs all ops. With `disturb` each element of each output is first moved by a random fraction of its bound, as a
  /// correct but imperfect backend would; the random numbers come from that seed.
  void run(std::optional<std::uint64_t> disturb = {});

  /// Runs one op of the program, which must have run up to it; see run().
  void run_op(int index, std::optional<std::uint64_t> disturb = {});

  [[nodiscard]] TensorView view(ValueId id) const;
  [[nodiscard]] std::byte* data(StorageId id) { return memory_[static_cast<std::size_t>(id.index)].data(); }

 private:
  const Program& program_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace gpubench
