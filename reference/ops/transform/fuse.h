// Rewrites chains of ops into the fused ops that a backend claims. The list of rewrites is fixed and short.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

struct Fused {
  Program program;
  std::vector<std::string> rewrites;  ///< what was put in, for the record
};

/// The program with every rewrite whose fused op is among `claims` applied. No rewrite exists yet, so the program comes
/// back unchanged; a claim that names no known rewrite throws ProgramError, so that none is ignored in silence.
[[nodiscard]] Fused fuse(const Program& program, std::span<const OpKind> claims);

}  // namespace gpubench
