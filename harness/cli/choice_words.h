// The words of flags that are a choice among a few: for the parser, and for the completion of shells.
#pragma once

#include "harness/cli/options.h"
#include "harness/cli/words.h"

namespace gpubench {

inline constexpr Word<Tier> tier_words[] = {
    {"smoke", Tier::smoke}, {"quick", Tier::quick}, {"standard", Tier::standard}, {"large", Tier::large}};
inline constexpr Word<Preset> preset_words[] = {{"smoke", Preset::smoke},
                                                {"quick", Preset::quick},
                                                {"standard", Preset::standard},
                                                {"gate", Preset::gate},
                                                {"thorough", Preset::thorough}};
inline constexpr Word<CheckMode> check_words[] = {
    {"off", CheckMode::off}, {"sample", CheckMode::sample}, {"full", CheckMode::full}};
inline constexpr Word<LaunchMode> launch_words[] = {{"graph", LaunchMode::graph}, {"stream", LaunchMode::stream}};
inline constexpr Word<ColorMode> color_words[] = {
    {"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}};
inline constexpr Word<ProgressMode> progress_words[] = {{"auto", ProgressMode::automatic},
                                                        {"bar", ProgressMode::bar},
                                                        {"lines", ProgressMode::lines},
                                                        {"none", ProgressMode::none}};
inline constexpr Word<GithubMode> github_words[] = {
    {"auto", GithubMode::automatic}, {"on", GithubMode::on}, {"off", GithubMode::off}};
inline constexpr Word<Shell> shell_words[] = {{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}};
inline constexpr Word<bool> switch_words[] = {{"on", true}, {"off", false}};
inline constexpr Word<bool> list_format_words[] = {{"table", false}, {"json", true}};
inline constexpr Word<CompareFormat> compare_format_words[] = {{"table", CompareFormat::table},
                                                               {"markdown", CompareFormat::markdown},
                                                               {"json", CompareFormat::json},
                                                               {"csv", CompareFormat::csv}};

}  // namespace gpubench
