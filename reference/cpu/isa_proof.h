// A trial of the instruction sets in a child process, where a crash costs nothing.
//
// Processors announce more than they have: virtual machines hand on the flags of AMX with an empty CPUID leaf 0x1D, and
// oneDNN's AMX code then ends with SIGILL. No flag reveals that; running the code does. A signal handler that jumps
// back would leave the library as it is, with its choice of instruction set made for good, so each trial is a child. It
// is forked rather than started again with a flag, because every program that opens the backend has to be covered,
// tests included, and not all of them have such a flag. Fork is safe here: the trial comes before anything else uses
// oneDNN, and the child runs on one thread, so that it neither needs OpenMP's threads, which it has not inherited, nor
// takes a lock that one of them held.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace gpubench::cpu {

/// The instruction sets that a process allows itself.
struct IsaLimit {
  std::string onednn;            ///< the highest of oneDNN's instruction sets; "": the library's own choice
  std::set<std::string> barred;  ///< kernels of our own that are passed over: "avx512", "avx512_bf16", "amx_bf16"
  bool operator==(const IsaLimit&) const = default;
};

/// The outcome of trying a limit.
struct IsaProof {
  enum class Stage {
    started,  ///< nothing was tried yet
    clones,   ///< vector code that the loader chose (parallel.h): there is no choice to make
    own,      ///< kernels of our own for one instruction set
    onednn,   ///< oneDNN's products
    passed    ///< everything was right
  };
  Stage stage = Stage::started;    ///< how far it came
  std::string step;                ///< what was tried last: "amx_bf16", "the bf16 matmul (onednn:...)"
  std::string fault;               ///< how it ended there: "died with SIGILL", "gave a wrong result"
  std::string onednn;              ///< oneDNN's highest instruction set under the limit; "" where it was not reached
  std::vector<std::string> tried;  ///< every step
};
using IsaProver = std::function<IsaProof(const IsaLimit& limit)>;

/// Tries everything that `limit` lets this process use, in a child of it: own kernels, then oneDNN.
/// Throws BackendError when no child can be started.
[[nodiscard]] IsaProof prove_in_child(const IsaLimit& limit);

}  // namespace gpubench::cpu
