#include "reference/cpu/onednn.h"

#include <fmt/core.h>

#include <dnnl.hpp>

#include "harness/core/error.h"

namespace gpubench::cpu {

struct OneDnn::State {
  dnnl::engine engine;
  dnnl::stream stream;
};

OneDnn::OneDnn() {
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    state_ = std::make_unique<State>(State{engine, dnnl::stream(engine)});
  } catch (const dnnl::error& error) {
    throw BackendError(fmt::format("oneDNN cannot make a cpu engine: {}", error.what()));
  }
}

OneDnn::~OneDnn() = default;

std::string OneDnn::version() const {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{} ({})", version->major, version->minor, version->patch, version->hash);
}

}  // namespace gpubench::cpu
