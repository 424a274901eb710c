#include "harness/cli/examples.h"

namespace gpubench {
namespace {

constexpr std::string_view of_run = R"(  gpubench --suite all                         every suite at the default tier
  gpubench --suite gemm,conv --tier smoke      a few cases, seconds
  gpubench --suite transformer --precision bf16 -v
  gpubench --suite transformer --gpus 1,2,4,8  scaling: each case on that many GPUs
  gpubench --suite collectives --ranks 2       on a CPU: two ranks, each with a share of the processors
  gpubench --filter '^gemm/matmul/' --axis m=768,1536 --check full
  gpubench --suite all --dry-run               what would run, how long, how much memory
  gpubench --suite gemm --inject-error gemm=bit  what a failure looks like
  gpubench --suite memory --json - | jq .gpubench.totals
)";

constexpr std::string_view of_list = R"(  gpubench list suites
  gpubench list --suite attention --tier standard
  gpubench list gemm/matmul/m=512,n=512,k=512/f32/x1
  gpubench list --format json
)";

constexpr std::string_view of_doctor = R"(  gpubench doctor
  gpubench doctor --color always | less -R
)";

constexpr std::string_view of_compare = R"(  gpubench compare old/report.json new/report.json
  gpubench compare --a old*.json --b new*.json --noise .     several runs a side, and the noise between runs
  gpubench compare a100.json h200.json --format markdown
)";

constexpr std::string_view of_gate =
    R"(  gpubench gate --baseline a*.json --candidate b*.json            three reports a side or more
  gpubench gate --baseline a.json --candidate b.json --noise .    one each, after gpubench calibrate
  gpubench gate --baseline gpubench-baselines/main.json --candidate b*.json --junit gate.xml --github
)";

constexpr std::string_view of_calibrate =
    R"(  gpubench calibrate --suite gemm --preset gate        ten runs, noise-FINGERPRINT.json
  gpubench calibrate --runs 5 --suite all --tier standard --keep runs
  gpubench calibrate --from runs/*.json                of reports that are there already
)";

constexpr std::string_view of_baseline = R"(  gpubench baseline save main run1.json run2.json run3.json
  gpubench baseline list
  gpubench baseline show main
  gpubench baseline merge both main other
)";

constexpr std::string_view of_validate = R"(  gpubench validate gpubench-out/20261121T042311Z/report.json
  gpubench validate results/*.json
)";

constexpr std::string_view of_report =
    R"(  gpubench report gpubench-out/20261121T042311Z/report.json      report.html beside it
  gpubench report a100/report.json h200/report.json -o both.html
  gpubench report old.json new.json -o both.html --label A=before --label B=after
  gpubench report report.json --svg charts --price-per-hour 2.49
)";

constexpr std::string_view of_export = R"(  gpubench export --format csv report.json > report.csv
  gpubench export --format gbench report.json -o new.json && compare.py benchmarks old.json new.json
  gpubench export --format report --anonymize report.json -o shared.json
  gpubench export --format prometheus report.json -o /var/lib/node_exporter/gpubench.prom
)";

constexpr std::string_view of_completion =
    R"(  gpubench completion bash > ~/.local/share/bash-completion/completions/gpubench
  gpubench completion fish > ~/.config/fish/completions/gpubench.fish
)";

constexpr std::string_view of_help = R"(  gpubench help run
  gpubench gate --help
)";

constexpr std::string_view of_version = R"(  gpubench version
  gpubench --version
)";

}  // namespace

std::string_view examples_of(Verb verb) {
  switch (verb) {
    case Verb::run: return of_run;
    case Verb::list: return of_list;
    case Verb::doctor: return of_doctor;
    case Verb::compare: return of_compare;
    case Verb::gate: return of_gate;
    case Verb::calibrate: return of_calibrate;
    case Verb::baseline: return of_baseline;
    case Verb::validate: return of_validate;
    case Verb::report_page: return of_report;
    case Verb::export_report: return of_export;
    case Verb::completion: return of_completion;
    case Verb::help: return of_help;
    case Verb::version: return of_version;
    case Verb::man:
    case Verb::probe:
    case Verb::describe_device: break;
  }
  return "";
}

std::string_view first_examples() {
  return R"(  gpubench --suite all --tier smoke   every suite, in seconds: is it right here?
  gpubench --suite all                the default tier, minutes: numbers to keep
  gpubench list suites                what there is to run
)";
}

}  // namespace gpubench
