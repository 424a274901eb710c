// A library in the place of the CUDA module that hangs while it is loaded, like one whose constructors ask a driver
// that does not answer.
#include "tests/fakes/cuda/hang.h"

namespace {

[[maybe_unused]] const bool loaded = [] {
  gpubench::hang_in("constructor");
  return true;
}();

}  // namespace
