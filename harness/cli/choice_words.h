// The words of flags that are a choice among a few: for the parser, and for the completion of shells.
#pragma once

#include "harness/cli/options.h"
#include "harness/cli/words.h"

namespace gpubench {

inline constexpr Word<Tier> tier_words[] = {
    {"smoke", Tier::smoke}, {"quick", Tier::quick}, {"standard", Tier::standard}, {"large", Tier::large}};
inline constexpr Word<Preset> preset_words[] = {{"minimal", Preset::minimal},
                                                {"brief", Preset::brief},
                                                {"normal", Preset::normal},
                                                {"gate", Preset::gate},
                                                {"thorough", Preset::thorough}};
/// What presets were called before report schema 1.5, as tiers are: rerun lines of older reports have these names.
inline constexpr Word<std::string_view> preset_aliases[] = {
    {"smoke", "minimal"}, {"quick", "brief"}, {"standard", "normal"}};
/// What other frameworks call our recipes. "fp8" alone is the hybrid: e4m3 forward, e5m2 for gradients.
inline constexpr Word<std::string_view> precision_aliases[] = {
    {"fp64", "f64"},      {"float64", "f64"}, {"double", "f64"},    {"fp32", "f32"},     {"float32", "f32"},
    {"float", "f32"},     {"single", "f32"},  {"fp16", "f16"},      {"float16", "f16"},  {"half", "f16"},
    {"bfloat16", "bf16"}, {"bfloat", "bf16"}, {"fp8", "f8_hybrid"}, {"f8", "f8_hybrid"}, {"float8", "f8_hybrid"}};
inline constexpr Word<CheckMode> check_words[] = {
    {"off", CheckMode::off}, {"sample", CheckMode::sample}, {"full", CheckMode::full}};
inline constexpr Word<LaunchMode> launch_words[] = {{"graph", LaunchMode::graph}, {"stream", LaunchMode::stream}};
inline constexpr Word<ErrorKind> error_words[] = {{"bit", ErrorKind::bit},     {"nan", ErrorKind::nan},
                                                  {"zero", ErrorKind::zero},   {"sign", ErrorKind::sign},
                                                  {"scale", ErrorKind::scale}, {"drop", ErrorKind::drop}};
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
