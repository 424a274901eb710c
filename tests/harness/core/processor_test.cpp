#include "harness/core/processor.h"

#include <gtest/gtest.h>

namespace gpubench {
namespace processor_test {

// As Linux prints it on Arm.
std::string arm(const std::string& implementer, const std::string& part) {
  return "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes atomics fphp asimdhp sve bf16\n"
         "CPU implementer\t: " +
         implementer + "\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: " + part +
         "\nCPU revision\t: 1\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n";
}

TEST(Processor, OfArmIsNamedByItsPart) {
  EXPECT_EQ(processor_model(arm("0x41", "0xd0c")), "Neoverse-N1");
  EXPECT_EQ(processor_model(arm("0x41", "0xd4f")), "Neoverse-V2");
  EXPECT_EQ(processor_model(arm("0x48", "0xd4f")), "Arm part 0xd4f, implementer 0x48");
}

TEST(Processor, WithANameInTheFileHasThatName) {
  EXPECT_EQ(processor_model("model\t\t: 1\nmodel name\t: Made Up CPU \r\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "Made Up CPU");
}

TEST(Processor, AnEmptyFileGivesNoName) {
  for (const std::string text :
       {"", "\n\n", "model name", "model name:", "CPU part : 0xd0c\n", "CPU implementer: 0x41\n"})
    EXPECT_EQ(processor_model(text), "") << text;
}

TEST(Processor, LeavesTheExtensionsThatProductsUse) {
  EXPECT_EQ(instruction_sets(arm("0x41", "0xd4f")), (std::vector<std::string>{"asimd", "asimdhp", "bf16", "sve"}));
  EXPECT_EQ(instruction_sets("flags\t\t: fpu avx512f_not avx2 sse4_2\n"), (std::vector<std::string>{"sse4_2", "avx2"}));
  EXPECT_TRUE(instruction_sets("flags:").empty());
}

}  // namespace processor_test
}  // namespace gpubench
