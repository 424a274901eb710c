// Flags and arguments that several verbs take, in parts under the headings of the help.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/flags.h"
#include "harness/compare/effect.h"

namespace gpubench {

/// What is run. `suites`: words that complete --suite.
[[nodiscard]] std::vector<Flag> select_flags(std::span<const std::string> suites);
[[nodiscard]] std::vector<Flag> rank_flags();  ///< --parallel, --axis
[[nodiscard]] std::vector<Flag> shapes_flag();

/// How it is measured.
[[nodiscard]] std::vector<Flag> device_flag();
[[nodiscard]] std::vector<Flag> deadline_flag();
[[nodiscard]] std::vector<Flag> trust_libraries_flag();
[[nodiscard]] std::vector<Flag> python_flag();
[[nodiscard]] std::vector<Flag> seed_flag();
[[nodiscard]] std::vector<Flag> deterministic_flag();
[[nodiscard]] std::vector<Flag> isolate_flag();
[[nodiscard]] std::vector<Flag> inject_error_flag();
/// All of these, and the flags of the protocol and of implementations: what run, calibrate and tune-batch take.
[[nodiscard]] std::vector<Flag> measuring_flags();
[[nodiscard]] std::vector<Flag> check_flags();

/// What is written, and how.
[[nodiscard]] std::vector<Flag> force_flag();
[[nodiscard]] std::vector<Flag> mode_flag();
[[nodiscard]] std::vector<Flag> anonymize_flags();
[[nodiscard]] std::vector<Flag> detail_flag();
[[nodiscard]] std::vector<Flag> color_flag();
[[nodiscard]] std::vector<Flag> json_flag(
    std::string text_of = "all of it as JSON; -: to standard output, and nothing else");
[[nodiscard]] std::vector<Flag> verbose_flag(std::string text_of);

/// Hidden: of workers and other children that answer by descriptors, and of children that do a verb's work.
[[nodiscard]] std::vector<Flag> worker_flags();
[[nodiscard]] std::vector<Flag> child_flags();

/// One word without a flag, or several. `known`: words offered for completion.
[[nodiscard]] std::vector<Flag> subject_argument(std::string_view type, std::vector<std::string> known = {});
[[nodiscard]] std::vector<Flag> several_arguments(std::string_view type, ValueKind value,
                                                  std::vector<std::string> known = {});

/// "[SUITE=]PERCENT"; if repeated for a suite, the last one wins. Throws UsageError.
void set_tau(Tau& tau, const std::string& flag, const std::string& word);

/// Of compare and gate, whose own options have `noise` and `tau`.
template <class Own>
[[nodiscard]] std::vector<Flag> comparison_flags() {
  return under("compare",
               row("--noise", "FILE",
                   "what gpubench calibrate wrote, or a folder in which it is named after the set-up "
                   "(noise-FINGERPRINT.json)",
                   text(own(&Own::noise))),
               row("--tau", "[SUITE=]PERCENT",
                   "a change that matters (default: 3%); SUITE=10%: for the cases of one suite; may be repeated",
                   {Takes::each, [](Options& o, const std::string& flag, const std::string& word) {
                      set_tau(std::any_cast<Own&>(o.own).tau, flag, word);
                    }}));
}

/// Of predict and simulate, whose own options have `node_gb_per_s` and `per_node`.
template <class Own>
[[nodiscard]] std::vector<Flag> node_flags() {
  return under("measure",
               row("--nvlink", "GB/S", "of each device to others of its node, one way (default: 450)",
                   converted(own(&Own::node_gb_per_s), positive_of)),
               row("--gpus-per-node", "N", "that NVLink joins (default: 8)",
                   converted(own(&Own::per_node), whole_from<std::int64_t>(1, 1 << 20))));
}

}  // namespace gpubench
