// A channel between two threads: process 0 asks its own rank by it, as it asks those of other processes.
#pragma once

#include <memory>

#include "harness/core/processes.h"

namespace gpubench {

/// The two ends of a channel.
struct ChannelPair {
  std::unique_ptr<Channel> first, second;
};
[[nodiscard]] ChannelPair local_channel();

}  // namespace gpubench
