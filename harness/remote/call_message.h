// Ops and their tensors as messages: what another process plans and binds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/program.h"
#include "harness/core/tensor.h"
#include "harness/remote/message.h"

namespace gpubench {

void put_spec(MessageWriter& to, const TensorSpec& spec);
/// Throws MessageError; ProgramError for a shape that cannot be.
[[nodiscard]] TensorSpec get_spec(MessageReader& from);
void put_specs(MessageWriter& to, std::span<const TensorSpec> specs);
[[nodiscard]] std::vector<TensorSpec> get_specs(MessageReader& from);

void put_call(MessageWriter& to, const OpCall& call);
/// The op is found by its name. Throws MessageError for one that there is not, and UsageError for attributes that it
/// does not have.
[[nodiscard]] OpCall get_call(MessageReader& from);

void put_device(MessageWriter& to, const DeviceInfo& device);
[[nodiscard]] DeviceInfo get_device(MessageReader& from);

}  // namespace gpubench
