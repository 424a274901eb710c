#include "harness/python/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "harness/cli/run_cli.h"
#include "harness/python/check_call.h"
#include "harness/run/own_implementation.h"
#include "suites/suites.h"

namespace {

using namespace gpubench;

void write_to(std::span<char> text, std::string_view said) {
  if (text.empty()) return;
  const std::size_t size = std::min(text.size() - 1, said.size());
  std::copy_n(said.data(), size, text.data());
  text[size] = '\0';
}

// Exceptions must not cross the C interface.
template <class Work>
gpubench_status guarded(std::span<char> text, const Work& work) {
  try {
    work();
    return GPUBENCH_OK;
  } catch (const std::exception& e) {
    write_to(text, e.what());
  } catch (...) {
    write_to(text, "an exception of unknown type");
  }
  return GPUBENCH_FAILED;
}

void tell(const CheckedCall& checked, gpubench_verdict& verdict) {
  const OpParity& parity = checked.parity;
  verdict = {};
  verdict.passed = parity.verdict == Verdict::pass ? 1 : 0;
  write_to(verdict.verdict, name(parity.verdict));
  verdict.error_over_bound = parity.error_over_bound;
  verdict.judged = parity.judged;
  verdict.elements = parity.elements;
  verdict.bad = parity.bad;
  verdict.worst_rank = -1;
  write_to(verdict.message, parity.reason);
  if (!parity.worst) return;
  const Worst& worst = *parity.worst;
  const std::size_t axes = std::min(worst.index.size(), std::size(verdict.worst_index));
  std::copy_n(worst.index.begin(), axes, verdict.worst_index);
  verdict.worst_rank = static_cast<std::int32_t>(axes);
  write_to(verdict.worst_operand, worst.tensor);
  verdict.got = worst.got;
  verdict.want = worst.want;
  verdict.bound = worst.bound;
  write_to(verdict.rule, checked.rule);
}

// gpubench_describe() prints the index in AttributeValue as gpubench_attribute_type.
static_assert(std::is_same_v<std::variant_alternative_t<GPUBENCH_LIST, AttributeValue>, std::vector<std::int64_t>> &&
              std::is_same_v<std::variant_alternative_t<GPUBENCH_WORD, AttributeValue>, std::string_view>);

}  // namespace

int gpubench_main(int argc, char** argv) {
  if (argc > 0 && argv[0][0] == '/') set_program(argv[0]);
  return run_program(argc, argv, all_suites(), built_in_backends(argv[0]), built_revision());
}

void gpubench_register(const char* file, const gpubench_implementation* table) {
  register_implementation(file, *table);
}

gpubench_status gpubench_check(const gpubench_call* call, const gpubench_check_options* options,
                               gpubench_verdict* verdict, char* text, size_t text_size) {
  return guarded({text, text_size}, [&] {
    JudgePolicy policy;
    policy.mode = options->sample != 0 ? CheckMode::sample : CheckMode::full;
    policy.seed = options->seed;
    policy.threads =
        options->threads > 0 ? options->threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    policy.cause_flop = usual_cause_flop;
    tell(check_call(*call, policy), *verdict);
  });
}

gpubench_status gpubench_describe(const char* op, char* text, size_t text_size) {
  return guarded({text, text_size}, [&] {
    const OpKind kind = definition_of(op).kind();
    std::string all = fmt::format("{}\n{}\n", kind.inputs, kind.outputs);
    for (const Attribute& one : make_attributes(kind).list()) {
      const bool* const set = std::get_if<bool>(&one.value);
      all += fmt::format("{}\t{}\t{}\t{}\n", one.name, one.value.index(),
                         set == nullptr ? value_text(one.value)
                         : *set         ? "true"
                                        : "false",
                         fmt::join(inputs_of_switch(kind, one.name), " "));
    }
    write_to({text, text_size}, all);
  });
}
