#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/case_listing.h"
#include "harness/cli/explain.h"
#include "harness/cli/verb.h"
#include "harness/core/text/quantity.h"

namespace gpubench {
namespace {

struct ExplainOptions {
  std::string html;
};

std::string indented(std::string_view lines) {
  std::string text = "  ";
  for (const char c : lines) text += c == '\n' ? "\n  " : std::string(1, c);
  std::size_t at = 0;
  while ((at = text.find("\n  \n", at)) != std::string::npos) text.erase(at + 1, 2);  // no trailing blanks
  return text + "\n";
}

std::string names_text(const std::set<std::string>& names) {
  return joined(std::vector<std::string>(names.begin(), names.end()));
}

std::string example_text(const OpExample& example, const ConsoleStyle& style) {
  if (example.case_id.empty()) return "\nno case has it\n";
  std::string text = fmt::format("\nexample: {}{}\n", example.case_id, example.fused ? ", where ops are fused" : "");
  TextTable facts({{""}, {""}});
  for (const auto& [operand, tensor] : example.tensors) facts.add({operand, tensor});
  if (!example.attributes.empty()) facts.add({"attributes", example.attributes});
  facts.add({"work", format_quantity(example.cost.flop, "FLOP")});
  facts.add({"moves", format_quantity(example.cost.bytes, "B")});
  text += facts.text(style, 2) + "\nbound of its error, before one rounding to the type of the output\n";
  TextTable bounds({{"output"}, {"bound"}});
  for (const auto& [output, bound] : example.bounds) bounds.add({output, bound});
  return text + bounds.text(style, 2);
}

std::string op_text(const OpExplanation& op, const ConsoleStyle& style) {
  std::string text = fmt::format("{}\n{}\n\n", op.kind.name, fitted(op.doc.meaning, style.width, 0));
  TextTable operands({{"operand"}, {"role"}, {"shape and type"}});
  for (const OpOperand& operand : op.operands) operands.add({operand.name, operand.role, operand.what});
  text += operands.text(style, 2);
  if (!op.attributes.empty()) {
    TextTable attributes({{"attribute"}, {"kind"}, {"default"}, {"words"}});
    for (const std::vector<std::string>& row : op.attributes) attributes.add(row);
    text += "\n" + attributes.text(style, 2);
  }
  text += "\nformula\n" + indented(op.doc.body);
  if (!op.doc.source.empty()) text += "\nsource\n" + indented(op.doc.source);
  text += example_text(op.example, style) + "\n";
  TextTable links({{""}, {""}});
  if (!op.gradient_by.empty()) links.add({"gradient by", names_text(op.gradient_by)});
  if (!op.gradient_of.empty()) links.add({"gradient of", names_text(op.gradient_of)});
  if (!op.workloads.empty()) links.add({"workloads", names_text(op.workloads)});
  text += links.text(style, 2);
  if (op.example.case_id.empty()) return text;
  return text + fmt::format("\n{}\n  {}\n", fitted(implementer_note, style.width, 0), op.example.run);
}

int explain_case(const Options& options, const Environment& environment, std::span<const OpExplanation> ops) {
  const std::vector<std::string> names = op_names();
  const std::vector<PlannedCase> found = named_cases(options, environment, names);
  if (found.size() != 1) {
    throw UsageError(fmt::format(
        "explain: '{}' is not an op, and {} cases match{}; give a longer part of an id, or an op; see gpubench explain",
        visible(options.subject), found.size(), did_you_mean(options.subject, names)));
  }
  const ConsoleStyle style = console_style(options, Stream::out, environment);
  environment.out << case_detail(found.front(), rerun_line(options, found.front()), style);
  std::set<std::string_view> kinds;
  const Program program = found.front().workload->build(found.front().c);
  for (const OpCall& call : program.ops()) kinds.insert(call.kind.name);
  for (const OpExplanation& op : ops) {
    if (kinds.count(op.kind.name) == 0) continue;
    environment.out << fmt::format("\n{}\n{}\n", op.kind.name, fitted(op.doc.meaning, style.width, 0))
                    << indented(op.doc.body);
  }
  return exit_codes::ok;
}

void write_pages(const Options& options, const Environment& environment, std::span<const OpExplanation> ops) {
  try {
    make_folder(options.of<ExplainOptions>().html);
    const auto write = [&](const std::string& name, const std::string& page) {
      write_atomically((std::filesystem::path(options.of<ExplainOptions>().html) / (name + ".html")).string(), page,
                       options.writing);
    };
    for (const OpExplanation& op : ops) write(std::string(op.kind.name), op_page(op));
    write("index", op_index_page(ops));
  } catch (const WriteError& e) {
    fail_to_write("--html", e);
  }
  environment.err << fmt::format("{}: index.html and {} pages\n", visible(options.of<ExplainOptions>().html),
                                 ops.size());
}

int explain_command(const Options& options, const Environment& environment) {
  const std::vector<OpExplanation> ops = explain_ops(environment.suites);
  if (!options.of<ExplainOptions>().html.empty()) {
    if (!options.subject.empty()) throw UsageError("explain: --html writes the pages of all ops; leave the name out");
    write_pages(options, environment, ops);
    return exit_codes::ok;
  }
  const ConsoleStyle style = console_style(options, Stream::out, environment);
  TextTable table({{"op"}, {"what it computes"}});
  for (const OpExplanation& op : ops) {
    if (op.kind.name == options.subject) {
      environment.out << op_text(op, style);
      return exit_codes::ok;
    }
    table.add({std::string(op.kind.name), std::string(op.doc.meaning)});
  }
  if (!options.subject.empty()) return explain_case(options, environment, ops);
  environment.out << table.text(style);
  return exit_codes::ok;
}

std::vector<Flag> explain_flags(std::span<const std::string> /*suites*/) {
  return together(shared_flags({"--force", "--mode"}),
                  under("output", row("--html", "DIR", "folder for a page of each op, and index.html, which lists them",
                                      text(own(&ExplainOptions::html)))),
                  subject_argument("OP|CASE", op_names()));
}

}  // namespace

Verb explain_verb() {
  return {.name = "explain",
          .arguments = "[OP | CASE] [flags]",
          .summary = "show what an op computes: formula, operands, error bound",
          .description = "Also attributes and gradient, or the ops of a case.",
          .examples = R"(  gpubench explain                             every op, in a line
  gpubench explain layer_norm_backward
  gpubench explain gemm/matmul/m=512,n=512,k=512/f32/x1
  gpubench explain --html ops                  a page of each op, for a browser
)",
          .flags = explain_flags,
          .act = explain_command,
          .options = ExplainOptions{}};
}

}  // namespace gpubench
