// Ops and tensors as messages: they survive a round trip, and truncated or changed bytes are rejected.
#include "harness/remote/requests.h"

#include <gtest/gtest.h>

#include "harness/plan/plan.h"
#include "suites/suites.h"

namespace gpubench {
namespace {

std::vector<std::byte> written(const OpCall& call, std::span<const TensorSpec> specs) {
  MessageWriter message;
  put_call(message, call);
  put_specs(message, specs);
  return {message.bytes().begin(), message.bytes().end()};
}

void expect_same(const OpCall& got, const OpCall& sent) {
  EXPECT_EQ(got.kind, sent.kind);
  EXPECT_EQ(got.attributes, sent.attributes) << sent.kind.name << " " << sent.attributes.to_string();
  EXPECT_EQ(got.math, sent.math);
  EXPECT_EQ(got.inputs, sent.inputs);
  EXPECT_EQ(got.outputs, sent.outputs);
  EXPECT_EQ(got.label, sent.label);
  EXPECT_EQ(got.phase, sent.phase);
  EXPECT_EQ(got.group, sent.group);
  EXPECT_EQ(got.held, sent.held);
}

void expect_same(const TensorSpec& got, const TensorSpec& sent) {
  EXPECT_EQ(got.name, sent.name);
  EXPECT_EQ(got.shape, sent.shape);
  EXPECT_EQ(got.dtype, sent.dtype);
  EXPECT_EQ(got.layout, sent.layout);
  EXPECT_EQ(got.role, sent.role);
  EXPECT_EQ(got.fill, sent.fill);
  EXPECT_EQ(got.placement, sent.placement);
}

TEST(CallMessage, EveryOpOfTheSuitesSurvivesARoundTrip) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.ranks = {1, 2};
  int calls = 0;
  for (const PlannedCase& planned : declared_cases(all_suites(), selection)) {
    const Program program = planned.workload->build(planned.c);
    for (const OpCall& call : program.ops()) {
      const std::vector<TensorSpec> specs = specs_of_call(program, call);
      const std::vector<std::byte> bytes = written(call, specs);
      MessageReader reader(bytes);
      expect_same(get_call(reader), call);
      const std::vector<TensorSpec> got = get_specs(reader);
      ASSERT_EQ(got.size(), specs.size());
      for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], specs[i]);
      EXPECT_NO_THROW(reader.expect_end());
      ++calls;
    }
  }
  EXPECT_GT(calls, 1000);
}

TEST(CallMessage, ATruncatedMessageIsAnErrorAndAChangedOneDoesNotCrash) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.suites = {"transformer"};
  selection.ranks = {2};
  const PlannedCase planned = declared_cases(all_suites(), selection).at(0);
  const Program program = planned.workload->build(planned.c);
  int refused = 0;
  for (const OpCall& call : program.ops()) {
    const std::vector<std::byte> whole = written(call, specs_of_call(program, call));
    const auto read = [&refused](std::span<const std::byte> bytes) {
      MessageReader reader(bytes);
      try {
        (void)get_call(reader);
        for (const TensorSpec& spec : get_specs(reader)) (void)spec.bytes();
        reader.expect_end();
      } catch (const std::exception&) {  // sanitizers catch undefined behavior
        ++refused;
      }
    };
    for (std::size_t length = 0; length < whole.size(); length += 7) {
      const int before = refused;
      read(std::span(whole).first(length));
      EXPECT_EQ(refused, before + 1) << call.label << " cut to " << length;
    }
    for (std::size_t at = 0; at < whole.size(); at += 5) {
      std::vector<std::byte> changed = whole;
      changed[at] ^= std::byte{0xFF};
      read(changed);
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(CallMessage, ADeviceSurvivesARoundTrip) {
  DeviceInfo sent{"cpu", "A", 3, 4, 5, 6, {{"p", "q"}}, {{"onednn", "2.6"}, {"x", ""}}};
  MessageWriter message;
  put_device(message, sent);
  MessageReader reader(message.bytes());
  const DeviceInfo got = get_device(reader);
  EXPECT_EQ(got.kind, sent.kind);
  EXPECT_EQ(got.name, sent.name);
  EXPECT_EQ(got.units, 3);
  EXPECT_EQ(got.memory_bytes, 4);
  EXPECT_EQ(got.available_bytes, 5);
  EXPECT_EQ(got.cache_bytes, 6);
  EXPECT_EQ(got.properties, sent.properties);
  EXPECT_EQ(got.libraries, sent.libraries);
}

}  // namespace
}  // namespace gpubench
