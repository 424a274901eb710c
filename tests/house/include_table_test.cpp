// Enforces the include table of harness/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace {

namespace fs = std::filesystem;

struct Include {
  std::string file;  // relative to the root
  std::string target;
  bool ours;
};

struct Rule {
  std::string part;
  std::vector<std::string> allowed;  // folders or files of gpubench, besides the part itself
  std::vector<std::string> vendors;  // prefixes of <...> beyond the standard library
};

const std::vector<Rule>& table() {
  static const std::vector<Rule> rules{
      {"harness/core/", {}, {"stddef.h", "stdint.h", "dlpack/"}},  // C headers: implementation.h is C
      {"harness/core/text/", {}, {"fmt/"}},
      {"harness/core/file/", {"harness/core/text/"}, {"fmt/", "dirent.h", "unistd.h", "fcntl.h", "sys/"}},
      {"reference/ops/", {"harness/core/"}, {}},
      {"reference/cpu/",
       {"harness/core/", "reference/ops/"},
       {"dnnl", "oneapi/", "hwy/", "omp.h", "immintrin.h", "cpuid.h", "fmt/", "unistd.h", "sched.h", "sys/"}},
      {"reference/cuda/",
       {"harness/core/", "reference/ops/"},
       {"cuda_runtime_api.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cublasLt.h", "cudnn.h", "nccl.h", "dlfcn.h",
        "fmt/"}},
      {"reference/mpi/", {"harness/core/", "reference/ops/"}, {"mpi.h", "fmt/", "sched.h"}},
      {"suites/", {"harness/core/", "reference/ops/"}, {}},
      {"harness/plan/", {"harness/core/", "reference/ops/"}, {"fmt/", "re2/re2.h"}},
      {"harness/parity/", {"harness/core/", "reference/ops/", "harness/plan/"}, {"fmt/"}},
      {"harness/measure/",
       {"harness/core/", "reference/ops/", "harness/plan/", "harness/parity/"},
       {"boost/math/", "fmt/"}},
      {"harness/hardware/",
       {"harness/core/", "reference/ops/", "harness/plan/", "harness/parity/", "harness/measure/"},
       {"fmt/", "unistd.h", "sched.h", "sys/", "dlfcn.h"}},
      {"harness/run/",
       {"harness/core/", "harness/core/file/", "reference/ops/", "harness/plan/", "harness/parity/", "harness/measure/",
        "harness/hardware/"},
       {"fmt/", "unistd.h", "fcntl.h", "poll.h", "signal.h", "spawn.h", "sys/", "sched.h", "dlfcn.h", "elf.h",
        "xmmintrin.h"}},
      {"harness/verify/",
       {"harness/core/", "harness/core/text/", "harness/core/file/", "reference/ops/", "harness/parity/",
        "harness/run/"},
       {"fmt/", "unistd.h", "fcntl.h", "poll.h", "sys/"}},
      {"harness/remote/", {"harness/core/", "reference/ops/", "harness/run/rank_group.h"}, {"fmt/", "sys/mman.h"}},
      {"harness/report/",
       {"harness/core/", "harness/core/text/", "harness/core/file/", "harness/measure/links.h",
        "harness/measure/statistics.h"},
       {"fmt/", "nlohmann/", "dirent.h", "unistd.h", "fcntl.h", "sys/", "linux/magic.h"}},
      {"harness/shapes/",
       {"harness/core/", "harness/core/text/", "reference/ops/", "harness/plan/", "harness/report/"},
       {"fmt/"}},
      {"harness/page/chart/", {"harness/core/text/"}, {"fmt/"}},
      {"harness/compare/",
       {"harness/core/", "harness/core/text/", "harness/measure/statistics.h", "harness/report/"},
       {"fmt/", "nlohmann/"}},
      {"harness/network/", {}, {"fmt/"}},
      {"harness/predict/", {"harness/network/"}, {"fmt/"}},
      {"harness/simulate/",
       {"harness/core/", "reference/ops/", "harness/network/", "harness/run/rank_group.h"},
       {"fmt/"}},
      {"harness/page/",
       {"harness/core/", "harness/core/text/", "harness/measure/links.h", "harness/measure/statistics.h",
        "harness/report/", "harness/page/chart/", "harness/compare/"},
       {"fmt/"}},
  };
  return rules;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return text.rfind(p, 0) == 0; });
}

// Whether a part within `part` has a separate rule for this file.
bool has_own_rule(const std::string& file, const std::string& part) {
  return std::ranges::any_of(table(), [&](const Rule& rule) {
    return rule.part.size() > part.size() && rule.part.starts_with(part) && file.starts_with(rule.part);
  });
}

std::vector<Include> includes_of(const fs::path& root, const std::string& part) {
  static const std::regex line_pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::vector<Include> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / part)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    const std::string file = fs::relative(entry.path(), root).string();
    if (has_own_rule(file, part)) continue;
    std::ifstream in(entry.path());
    std::string line;
    std::smatch match;
    while (std::getline(in, line)) {
      if (std::regex_match(line, match, line_pattern)) found.push_back({file, match[2], match[1] == "\""});
    }
  }
  return found;
}

// A standard header has no slash, no dot, and only lower-case letters, digits and underscores.
bool is_standard(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

bool permitted(const Rule& rule, const Include& include) {
  if (!include.ours) return is_standard(include.target) || starts_with_any(include.target, rule.vendors);
  // A nested part must be allowed by its own name.
  const auto covers = [&include](const std::string& part) {
    return include.target.starts_with(part) && !has_own_rule(include.target, part);
  };
  return covers(rule.part) || std::ranges::any_of(rule.allowed, covers);
}

std::string violations(const std::function<bool(const Rule&, const Include&)>& allowed) {
  std::string text;
  for (const Rule& rule : table()) {
    for (const Include& include : includes_of(gpubench::paths::source_folder, rule.part)) {
      if (!allowed(rule, include)) text += include.file + " includes " + include.target + "\n";
    }
  }
  return text;
}

TEST(IncludeTable, EveryPartIncludesOnlyWhatItMay) { EXPECT_EQ(violations(permitted), ""); }

TEST(IncludeTable, ABackendNeverSeesTheTextbook) {
  // The check would be circular if the code under test could call its judge.
  const std::regex textbook(R"(reference/ops/(.*_textbook\.h|definition\.h|sum_error_bound\.h|transform/.*))");
  std::string found;
  for (const char* backend : {"reference/cpu/", "reference/cuda/", "reference/mpi/"}) {
    for (const Include& include : includes_of(gpubench::paths::source_folder, backend)) {
      if (std::regex_match(include.target, textbook)) found += include.file + " includes " + include.target + "\n";
    }
  }
  EXPECT_EQ(found, "");
}

TEST(IncludeTable, TheTextbookHasNoThreadsAndNoConsole) {
  const std::vector<std::string> never{"thread", "future", "atomic", "mutex", "iostream", "cstdio", "random"};
  std::string found;
  for (const Include& include : includes_of(gpubench::paths::source_folder, "reference/ops/")) {
    if (std::find(never.begin(), never.end(), include.target) != never.end())
      found += include.file + " includes " + include.target + "\n";
  }
  EXPECT_EQ(found, "");
}

TEST(IncludeTable, TheTextbookComputesInFp64Only) {
  const std::regex single(R"((^|[^\w_])float([^\w_]|$))");
  std::string found;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(gpubench::paths::source_folder) / "reference/ops")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".md" || entry.path().extension() == ".txt") continue;
    std::ifstream in(entry.path());
    std::string line;
    while (std::getline(in, line)) {
      const std::string code = line.substr(0, line.find("//"));
      if (std::regex_search(code, single)) found += entry.path().filename().string() + ": " + line + "\n";
    }
  }
  EXPECT_EQ(found, "");
}

// Two types with the same name are undefined behavior: the linker keeps the functions of one of them.
TEST(Headers, DefineNoTypeOfTheSameNameTwice) {
  const std::regex opening(R"(namespace ([\w:]+) \{)");
  const std::regex type(R"((?:struct|class|enum class) (\w+)(?: final)?(?: : [^;]*)? \{.*)");
  std::map<std::string, std::string> files;
  std::string found;
  for (const char* folder : {"harness", "reference", "suites"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(gpubench::paths::source_folder) / folder)) {
      if (entry.path().extension() != ".h") continue;
      const std::string file = fs::relative(entry.path(), gpubench::paths::source_folder).string();
      std::ifstream in(entry.path());
      std::string line, space;
      std::smatch match;
      while (std::getline(in, line)) {
        if (std::regex_match(line, match, opening)) space = match[1];
        if (!std::regex_match(line, match, type)) continue;
        const auto [first, added] = files.try_emplace(space + "::" + match[1].str(), file);
        if (!added) found += first->first + " in " + first->second + " and " + file + "\n";
      }
    }
  }
  EXPECT_EQ(found, "");
  EXPECT_GT(files.size(), 500U);
}

TEST(IncludeTable, TheCheckItselfSeesAForbiddenInclude) {
  const Rule& core = table().front();
  EXPECT_FALSE(permitted(core, {"harness/core/x.h", "nlohmann/json.hpp", false}));
  EXPECT_FALSE(permitted(core, {"harness/core/x.h", "harness/run/run.h", true}));
  EXPECT_TRUE(permitted(core, {"harness/core/x.h", "vector", false}));
  EXPECT_GT(includes_of(gpubench::paths::source_folder, "harness/core/").size(), 20U);
}

TEST(Verdicts, ASingleFileSetsThatOfARecord) {
  const std::regex assignment(R"((\.|->)verdict = )");
  // Verdicts of ops, plans and training steps are set where these are judged.
  const std::set<std::string> others{"judge.cpp", "op_judge.cpp", "precision_probe.cpp", "learning.cpp"};
  std::string found;
  for (const char* part : {"core", "plan", "parity", "measure", "hardware", "run", "verify", "remote", "cli"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(gpubench::paths::source_folder) / "harness" / part)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".cpp") || name == "case_record.cpp" || others.contains(name)) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        if (std::regex_search(line, assignment)) found += entry.path().string() + ": " + line + "\n";
      }
    }
  }
  EXPECT_EQ(found, "");
}

}  // namespace
