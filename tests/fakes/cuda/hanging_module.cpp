// A fake CUDA module that hangs while it is loaded, like one whose constructors wait for a driver.
#include "tests/fakes/cuda/hang.h"

namespace {

[[maybe_unused]] const bool loaded = [] {
  gpubench::hang_in("constructor");
  return true;
}();

}  // namespace
