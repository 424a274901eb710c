#include "harness/cli/flag_rows.h"

namespace gpubench {
namespace {

constexpr Word<CompareFormat> compare_format_words[] = {{"table", CompareFormat::table},
                                                        {"markdown", CompareFormat::markdown},
                                                        {"json", CompareFormat::json},
                                                        {"csv", CompareFormat::csv}};
constexpr int most_runs = 1000;

// Of two for the same the last one holds.
void set_tau(Options& o, const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  Tau& tau = o.compare.tau;
  const double share = share_of(flag, equals == word.npos ? word : word.substr(equals + 1));
  (equals == word.npos ? tau.all : tau.by_suite[word.substr(0, equals)]) = share;
}

}  // namespace

std::vector<FlagSection> compare_sections() {
  using enum Verb;
  return {
      {{compare},
       "compare",
       {
           row("--a", "FILE...", "side A: several runs of one build, or a baseline",
               all_of(Takes::many, in_compare(&CompareOptions::side_a))),
           row("--b", "FILE...", "side B", all_of(Takes::many, in_compare(&CompareOptions::side_b))),
       }},
      {{gate},
       "compare",
       {
           row("--baseline", "FILE...", "reports of the old build, or a baseline that was saved",
               all_of(Takes::many, in_compare(&CompareOptions::baselines))),
           row("--candidate", "FILE...", "reports of the new build",
               all_of(Takes::many, in_compare(&CompareOptions::candidates))),
       }},
      {{compare, gate},
       "compare",
       {
           row("--noise", "FILE",
               "what gpubench calibrate wrote, or a folder in which it is named after the set-up "
               "(noise-FINGERPRINT.json)",
               text(in_compare(&CompareOptions::noise))),
           row("--tau", "[SUITE=]PERCENT",
               "a change that matters (default: 3%); SUITE=10%: for the cases of one suite; may be repeated",
               {Takes::each, set_tau}),
       }},
      {{compare},
       "compare",
       {
           row("--format", "FORMAT", "table (default), markdown, json or csv",
               choice(in_compare(&CompareOptions::format), compare_format_words)),
       }},
      {{gate},
       "compare",
       {
           row("--strict", "", "an inconclusive case does not pass (exit 4)",
               turn_on(in_compare(&CompareOptions::strict))),
           row("--allow-diff", "KEY", "a fact of the set-up that may differ, as the refusal names it",
               all_of(Takes::each, in_compare(&CompareOptions::allowed_differences))),
           row("--allow-missing", "", "a case that the candidate lacks passes",
               turn_on(in_compare(&CompareOptions::allow_missing))),
           row("--json", "FILE", "all of it as JSON; -: to standard output, and nothing else",
               text(in_compare(&CompareOptions::json))),
           row("--junit", "FILE", "JUnit XML", text(in_compare(&CompareOptions::junit))),
           row("--markdown", "FILE", "a table for a pull request", text(in_compare(&CompareOptions::markdown))),
           row("--github", "", "annotations, and the table in $GITHUB_STEP_SUMMARY",
               turn_on(in_compare(&CompareOptions::github))),
       }},
      {{calibrate},
       "compare",
       {
           row("--runs", "N", "runs of this program, each of its own process (default: 10)",
               converted(in_compare(&CompareOptions::runs), whole_from(2, most_runs))),
           row("--from", "FILE...", "reports of one build on one set-up; nothing is run",
               all_of(Takes::many, in_compare(&CompareOptions::from))),
           row("-o,--output", "FILE", "the noise file (default: noise-FINGERPRINT.json)",
               text(in_compare(&CompareOptions::output))),
           row("--keep", "DIR", "keep the reports of the runs there", text(in_compare(&CompareOptions::keep))),
       }},
      {{baseline},
       "compare",
       {
           row("--dir", "DIR", "where baselines are (default: gpubench-baselines)",
               text(in_compare(&CompareOptions::dir))),
           row("--noise", "FILE", "a calibration of the same set-up, to be kept with it",
               text(in_compare(&CompareOptions::noise))),
           row("--force", "", "replace a baseline of the same name", turn_on(in_compare(&CompareOptions::force))),
       }},
  };
}

}  // namespace gpubench
