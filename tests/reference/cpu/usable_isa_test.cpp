// How failed trials lower the instruction set, and how this is reported; only the last tests run real trials.
#include "reference/cpu/usable_isa.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "harness/core/error.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench::cpu {
namespace usable_isa_test {

using Stage = IsaProof::Stage;
using Facts = std::vector<std::pair<std::string, std::string>>;
using Registers = std::array<std::uint32_t, 4>;

// CPUID as a table; missing leaves are zeros.
CpuidReader cpuid_of(const std::map<std::pair<std::uint32_t, std::uint32_t>, Registers>& table) {
  return [table](std::uint32_t leaf, std::uint32_t subleaf) {
    const auto found = table.find({leaf, subleaf});
    return found == table.end() ? Registers{} : found->second;
  };
}
const CpuidReader nothing_announced = cpuid_of({});
// Bit 24 of edx: tiles. Palette 1 has 8 tiles of 1 KiB (edx of a Xeon of the fourth generation), TMUL 16 rows.
const std::pair<const std::pair<std::uint32_t, std::uint32_t>, Registers> tiles_announced{{7, 0}, {0, 0, 0, 1U << 24U}};
const std::pair<const std::pair<std::uint32_t, std::uint32_t>, Registers> one_palette{{0x1D, 0}, {1, 0, 0, 0}};
const std::pair<const std::pair<std::uint32_t, std::uint32_t>, Registers> palette_1{{0x1D, 1},
                                                                                    {0x04002000, 0x00080040, 0x10, 0}};
const std::pair<const std::pair<std::uint32_t, std::uint32_t>, Registers> multiplier{{0x1E, 0}, {0, 0x4010, 0, 0}};

IsaProof passed(const std::string& onednn) { return {Stage::passed, "", "", onednn, {}}; }
IsaProof died(Stage stage, const std::string& step, const std::string& onednn) {
  return {stage, step, "died with SIGILL", onednn, {}};
}

// A processor on which oneDNN's instruction sets with "amx" in their name crash.
IsaProof without_amx(const IsaLimit& limit) {
  const std::string isa = limit.onednn.empty() ? "avx512_core_amx" : limit.onednn;
  const bool dies = isa.find("amx") != std::string::npos;
  return dies ? died(Stage::onednn, "the bf16 matmul (onednn:brg)", isa) : passed(isa);
}

TEST(UsableIsa, NothingIsLimitedWhereEverythingComesRight) {
  const UsableIsa isa =
      find_usable_isa([](const IsaLimit&) { return passed("avx512_core_amx"); }, nothing_announced, "");
  EXPECT_EQ(isa, UsableIsa{});
  EXPECT_EQ(properties_of(isa), Facts{});
}

TEST(UsableIsa, EachStepDownIsALowerOneAndTheLadderReachesTheGround) {
  std::vector<std::string> ladder{"avx512_core_amx"};
  while (!next_lower_isa(ladder.back()).empty()) ladder.push_back(next_lower_isa(ladder.back()));
  // Version 3 has avx512_core_fp16 between the first two.
  ladder.erase(std::remove(ladder.begin(), ladder.end(), "avx512_core_fp16"), ladder.end());
  EXPECT_EQ(ladder, (std::vector<std::string>{"avx512_core_amx", "avx512_core_bf16", "avx512_core_vnni", "avx512_core",
                                              "avx2", "avx", "sse41"}));
  EXPECT_EQ(next_lower_isa("avx2_vnni"), "avx2");
  EXPECT_EQ(next_lower_isa("no such"), "");
  EXPECT_THROW(limit_onednn("no such"), BackendError);
}

TEST(UsableIsa, AnEmptyAmxLeafIsNamedAsTheReason) {
  const UsableIsa isa = find_usable_isa(without_amx, cpuid_of({tiles_announced}), "");
  EXPECT_EQ(isa.limit.onednn, next_lower_isa("avx512_core_amx"));
  EXPECT_EQ(properties_of(isa), (Facts{{"cpu_isa", "limited to " + next_lower_isa("avx512_core_amx")},
                                       {"cpu_isa_reason", "amx is announced, but CPUID leaf 0x1D is empty"}}));
}

TEST(UsableIsa, OtherGapsOfAmxAreNamedAndWithoutOneHowItEnded) {
  const auto why = [](const CpuidReader& cpuid) { return find_usable_isa(without_amx, cpuid, "").why; };
  EXPECT_EQ(why(cpuid_of({tiles_announced, one_palette})), "amx is announced, but CPUID leaf 0x1D describes no tiles");
  EXPECT_EQ(why(cpuid_of({tiles_announced, one_palette, palette_1})), "amx is announced, but CPUID leaf 0x1E is empty");
  EXPECT_EQ(why(cpuid_of({tiles_announced, one_palette, palette_1, multiplier})),
            "oneDNN died with SIGILL in the bf16 matmul (onednn:brg)");
  EXPECT_EQ(why(nothing_announced), "oneDNN died with SIGILL in the bf16 matmul (onednn:brg)");
}

TEST(UsableIsa, AnEmptyAmxLeafIsNoReasonForWhatFailsWithoutAmx) {
  const auto prove = [](const IsaLimit& limit) {
    return limit.onednn.empty() ? died(Stage::onednn, "the f32 matmul", "avx512_core") : passed(limit.onednn);
  };
  EXPECT_EQ(find_usable_isa(prove, cpuid_of({tiles_announced}), "").why, "oneDNN died with SIGILL in the f32 matmul");
}

TEST(UsableIsa, LoweringGoesOnUntilAllComesRightAndTellsWhyNotTheNextHigherOne) {
  int trials = 0;
  const auto prove = [&](const IsaLimit& limit) -> IsaProof {
    ++trials;
    if (limit.onednn.empty()) return died(Stage::onednn, "the bf16 matmul", "avx512_core");
    if (limit.onednn == "avx2") return {Stage::onednn, "the f32 convolution", "gave a wrong result", "avx2", {}};
    return passed(limit.onednn);
  };
  const UsableIsa isa = find_usable_isa(prove, nothing_announced, "");
  EXPECT_EQ(isa.limit.onednn, "avx");
  EXPECT_EQ(isa.why, "oneDNN gave a wrong result in the f32 convolution");
  EXPECT_EQ(trials, 3);
}

TEST(UsableIsa, OwnKernelsThatFailArePassedOverAndTheRestIsTriedAgain) {
  const auto prove = [](const IsaLimit& limit) -> IsaProof {
    if (!limit.barred.contains("avx512")) return {Stage::own, "avx512", "gave a wrong result", "", {}};
    if (!limit.barred.contains("amx_bf16")) return died(Stage::own, "amx_bf16", "");
    return without_amx(limit);
  };
  const UsableIsa isa = find_usable_isa(prove, cpuid_of({tiles_announced}), "");
  EXPECT_EQ(isa.limit.barred, (std::set<std::string>{"amx_bf16", "avx512"}));
  const std::string onednn = next_lower_isa("avx512_core_amx");
  EXPECT_EQ(properties_of(isa),
            (Facts{{"cpu_isa", "limited to " + onednn + ", limited to own kernels without amx_bf16 and avx512"},
                   {"cpu_isa_reason",
                    "amx is announced, but CPUID leaf 0x1D is empty; own kernels for avx512 gave a wrong result; own "
                    "kernels for amx_bf16 died with SIGILL"}}));
}

TEST(UsableIsa, TheUsersSettingWinsAndWhatFailsUnderItIsSaid) {
  int trials = 0;
  const auto prove = [&](const IsaLimit& limit) {
    ++trials;
    return without_amx(limit);
  };
  const UsableIsa isa = find_usable_isa(prove, cpuid_of({tiles_announced}), "ONEDNN_MAX_CPU_ISA=ALL");
  EXPECT_EQ(isa.limit, IsaLimit{});
  EXPECT_EQ(trials, 1);
  EXPECT_EQ(properties_of(isa), (Facts{{"cpu_isa", "left as ONEDNN_MAX_CPU_ISA=ALL says"},
                                       {"cpu_isa_reason", "amx is announced, but CPUID leaf 0x1D is empty"}}));
}

TEST(UsableIsa, WhereNothingIsLeftToLowerTheBackendDoesNotStart) {
  const auto none = [](const IsaLimit& limit) {
    return died(Stage::onednn, "the f32 matmul", limit.onednn.empty() ? "avx2" : limit.onednn);
  };
  EXPECT_THROW((void)find_usable_isa(none, nothing_announced, ""), BackendError);
  const auto baseline = [](const IsaLimit&) { return died(Stage::baseline, "", ""); };
  EXPECT_THROW((void)find_usable_isa(baseline, nothing_announced, ""), BackendError);
  // If a library ignores its limit, or excluded own kernels run, the trials must end.
  const auto deaf = [](const IsaLimit&) { return died(Stage::onednn, "the f32 matmul", "avx2"); };
  EXPECT_THROW((void)find_usable_isa(deaf, nothing_announced, ""), BackendError);
  const auto stubborn = [](const IsaLimit&) { return died(Stage::own, "avx512", ""); };
  EXPECT_THROW((void)find_usable_isa(stubborn, nothing_announced, ""), BackendError);
}

TEST(UsableIsa, TheLimitIsWhatTheLibraryCameToUse) {
  const auto prove = [](const IsaLimit& limit) {
    return limit.onednn.empty() ? died(Stage::onednn, "the bf16 matmul", "avx512_core_amx")
                                : passed("avx512_core_vnni");
  };
  EXPECT_EQ(find_usable_isa(prove, nothing_announced, "").limit.onednn, "avx512_core_vnni");
}

TEST(UsableIsa, ChildrenReadWhatTheirParentFoundAndNobodyElses) {
  const UsableIsa isa{{"avx512_core_bf16", {"amx_bf16", "avx512"}}, "", "died|somehow"};
  UsableIsa want = isa;
  want.why = "died somehow";
  EXPECT_EQ(from_text(to_text(isa, 42), 42), want);
  EXPECT_EQ(from_text(to_text(UsableIsa{}, 42), 42), UsableIsa{});
  EXPECT_EQ(from_text(to_text(isa, 42), 43), std::nullopt);
  for (const char* text : {"", "42", "42||||x|y", "42||no such||", "42x||||", "||||"})
    EXPECT_EQ(from_text(text, 42), std::nullopt) << text;
}

TEST(UsableIsa, CpuidIsReadAsThisProcessorHasIt) {
#if defined(__x86_64__)
  EXPECT_GE(read_cpuid(0, 0)[0], 1U);
#endif
  EXPECT_EQ(read_cpuid(0x0FFFFFFF, 0), Registers{});
}

TEST(UsableIsa, ATrialTriesProductsOfOneDnnAndEveryKernelThatIsAnnounced) {
  const IsaProof proof = prove_in_child(usable_isa().limit);
  EXPECT_EQ(proof.stage, Stage::passed) << proof.step << " " << proof.fault;
  const auto tried = [&](const std::string& part) {
    return std::any_of(proof.tried.begin(), proof.tried.end(),
                       [&](const std::string& step) { return step.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(tried("f32 matmul"));
  EXPECT_TRUE(tried("f32 convolution"));
  EXPECT_TRUE(tried("f32 convolution backward_data"));
  EXPECT_TRUE(tried("f32 convolution backward_filter"));
  // Large enough that oneDNN uses AMX if available.
  EXPECT_TRUE(tried("amx") || proof.onednn.find("amx") == std::string::npos);
}

TEST(UsableIsa, OpeningTheBackendLeavesWhatWasFoundForChildren) {
  (void)testing::shared_backend();
  const char* text = std::getenv("_GPUBENCH_USABLE_ISA");
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(from_text(text, ::getpid()), usable_isa());
}

}  // namespace usable_isa_test
}  // namespace gpubench::cpu
