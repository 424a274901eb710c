// A backend around another that spoils what an op has written, but only now and then: in some calls of time(), in some
// runs, in one element. Every run of a round is really run, so that later ones overwrite what was spoiled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "harness/core/backend.h"

namespace gpubench::sim {

/// Calls of time() before the first round of a short case, by a preset of few rounds: whether it is short, and how long
/// it takes.
inline constexpr std::int64_t estimates = 2;

/// Where in the course of timing a run stands, of those that run the op; all count from 1.
struct Moment {
  std::int64_t call = 0;  ///< of time(); the first `estimates` calls are no rounds
  std::int64_t turn = 0;  ///< of this call, those of the warm-up included
  std::int64_t run = 0;   ///< of all calls together
};

struct Flaw {
  std::string label;                                         ///< of the op
  std::function<bool(const Moment&)> when;                   ///< whether a run inside time() is spoiled
  std::function<void(const TensorSpec&, std::byte*)> spoil;  ///< works on the op's first output
  bool always = false;                                       ///< in every run, those of the check included
};

/// Multiplies one element, given by its logical index, by -3 and takes 100 away: far outside any bound.
[[nodiscard]] std::function<void(const TensorSpec&, std::byte*)> one_wrong_element(std::int64_t linear);

/// `inner`, whose device memory the host must see, with the flaw; `run_ns` is what one run takes by its clock. Rotates
/// over the copies in the warm-up and in the samples anew, as the CPU backend does. `inner` must outlive it.
[[nodiscard]] std::unique_ptr<Backend> flaky(Backend& inner, Flaw flaw, double run_ns);

}  // namespace gpubench::sim
