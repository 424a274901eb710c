// run_cli(): from the command line to a verb, and from whatever goes wrong to an exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>

#include "harness/cli/cuda_module.h"
#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/help.h"
#include "harness/cli/options.h"
#include "harness/cli/run_context.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/core/error.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

int print_version(const Environment& environment) {
  environment.out << fmt::format("gpubench {}", version());
  for (const auto& [key, value] : build_facts(environment)) {
    if (!value.empty()) environment.out << fmt::format(", {}", value);
  }
  environment.out << "\n";
  return exit_codes::ok;
}

std::vector<std::string> suite_names(const Environment& environment) {
  std::vector<std::string> names;
  for (const Suite& suite : environment.suites) names.push_back(suite.name);
  return names;
}

int act(const Options& options, std::span<const std::string> words, const Environment& environment) {
  switch (options.verb) {
    case Verb::run: return run_verb(options, words, environment);
    case Verb::list: return list_verb(options, environment);
    case Verb::doctor: return doctor_verb(options, environment);
    case Verb::compare: return compare_verb(options, environment);
    case Verb::gate: return gate_verb(options, environment);
    case Verb::calibrate: return calibrate_verb(options, words, environment);
    case Verb::baseline: return baseline_verb(options, environment);
    case Verb::validate: return validate_verb(options, environment);
    case Verb::export_report: return export_verb(options, environment);
    case Verb::report_page: return page_verb(options, environment);
    case Verb::completion:
      environment.out << completion_text(*options.shell, suite_names(environment));
      return exit_codes::ok;
    case Verb::man: environment.out << manual_page(version()); return exit_codes::ok;
    case Verb::help:
      environment.out << help_text(options.subject, columns_of(Stream::out, environment));
      return exit_codes::ok;
    case Verb::version: return print_version(environment);
    case Verb::probe: probe(options.subject, options.worker_output, environment.backends); return exit_codes::ok;
    case Verb::describe_device:
      tell_device(choose_device(options.device, environment), options.worker_output);
      return exit_codes::ok;
  }
  return exit_codes::usage;
}

}  // namespace

int run_cli(int argc, const char* const* argv, const Environment& environment) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  Options options;
  const auto complain = [&](const std::exception& e) {
    environment.err << "gpubench: " << visible(e.what()) << std::endl;
  };
  try {
    options = parse_options(words, environment.variable, suite_names(environment));
    if (options.asks_for_nothing) {
      environment.err << short_help(columns_of(Stream::err, environment)) << std::flush;
      return exit_codes::usage;
    }
    if (options.trust_libraries) ::setenv(trust_libraries_variable, "on", 1);  // for child processes as well
    const int code = act(options, words, environment);
    environment.out.flush();
    if (environment.out.good()) return code;
    environment.err << "gpubench: standard output could not be written" << std::endl;
    return code == exit_codes::ok ? exit_codes::could_not_measure : code;
  } catch (const UsageError& e) {
    complain(e);
    if (!options.from_environment.empty()) {  // what is wrong may stand there rather than in the command line
      environment.err << "gpubench: set in the environment: " << variables_text(options.from_environment) << std::endl;
    }
    return exit_codes::usage;
  } catch (const std::bad_alloc&) {
    environment.err << out_of_memory << std::flush;
    return exit_codes::could_not_measure;
  } catch (const std::exception& e) {  // CannotMeasure, and whatever else ended the whole run
    complain(e);
    const int signal = environment.stop.load();
    return signal == 0 ? exit_codes::could_not_measure : exit_code({{}, signal, true});
  }
}

int exit_code(const Outcome& outcome) {
  const Totals& totals = outcome.totals;
  if (outcome.signal == SIGTERM) return exit_codes::terminated;
  if (outcome.signal == SIGHUP) return exit_codes::hung_up;
  if (outcome.signal != 0) return exit_codes::interrupted;
  const int failed =
      totals.count(Verdict::fail) + totals.count(Verdict::downgraded) + totals.count(Verdict::not_proven);
  if (failed > 0) return exit_codes::verdict_failed;
  if (totals.count(Verdict::error) > 0 || outcome.report_lost) return exit_codes::could_not_measure;
  const int ran = totals.count(Verdict::pass) + totals.count(Verdict::unverified);
  return ran > 0 ? exit_codes::ok : exit_codes::nothing_ran;
}

std::string explain_exit_code(int code) {
  switch (code) {
    case exit_codes::ok: return "all that ran passed";
    case exit_codes::verdict_failed: return "a verdict failed: fail, downgraded or not_proven";
    case exit_codes::usage: return "usage, configuration or input file; nothing was measured";
    case exit_codes::could_not_measure: return "could not measure: crash, hang, device or report lost";
    case exit_codes::not_comparable: return "not comparable, or nothing could be concluded";
    case exit_codes::nothing_ran: return "nothing ran";
    case exit_codes::hung_up: return "the terminal hung up; the report is partial";
    case exit_codes::interrupted: return "interrupted; the report is partial";
    case exit_codes::terminated: return "terminated; the report is partial";
    default: return "not an exit code of gpubench";
  }
}

}  // namespace gpubench
