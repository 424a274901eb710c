// The pages of explain --html.
#include <fmt/format.h>

#include "harness/cli/explain.h"
#include "harness/core/text/quantity.h"
#include "harness/page/html.h"

namespace gpubench {
namespace {

using page::Html;

constexpr std::string_view explain_style = R"(
main section { margin-top: 2.25rem; }
.meaning { font-size: 1.125rem; max-width: 48rem; margin-top: .5rem; }
pre { background: var(--wash); border-radius: .5rem; padding: 1rem 1.25rem; margin: .75rem 0 0; overflow-x: auto;
  font: .875rem/1.55 ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; }
main .scroll { margin-top: .75rem; }
footer { padding-block: 3rem; }
)";

void begin(Html& html, std::string_view title, std::string_view meaning) {
  html.raw(
          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n")
      .element("title", fmt::format("{}: gpubench", title))
      .raw("\n<style>\n")
      .raw(page::style_sheet())
      .raw(explain_style)
      .raw("</style>\n</head>\n<body>\n<header class=\"masthead\">\n")
      .raw("<p class=\"eyebrow\"><a href=\"index.html\">gpubench ops</a></p>\n")
      .element("h1", title)
      .raw("\n")
      .element("p", meaning, "class=\"meaning\"")
      .raw("\n</header>\n<main>\n");
}

std::string ended(Html& html) {
  html.raw("</main>\n<footer></footer>\n</body>\n</html>\n");
  return html.take();
}

void add_links(Html& html, std::string_view title, const std::set<std::string>& ops) {
  if (ops.empty()) return;
  html.raw("<p>").text(title);
  const char* before = " ";
  for (const std::string& op : ops) {
    html.raw(before).raw("<a href=\"").text(op).raw(".html\">").text(op).raw("</a>");
    before = ", ";
  }
  html.raw("</p>\n");
}

// Text of several lines, which Html::text() would show as one with marks in it.
void add_lines(Html& html, std::string_view lines, std::string_view between) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = lines.find('\n');
    html.text(lines.substr(0, end)).raw(end == std::string_view::npos ? "" : between);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
}

void add_section(Html& html, std::string_view title) {
  html.raw("</section>\n<section>\n").element("h2", title).raw("\n");
}

void add_example(Html& html, const OpExample& example) {
  add_section(html, "Bound");
  if (example.case_id.empty()) {
    html.raw("<p>No case has this op.</p>\n");
    return;
  }
  html.raw(
          "<p class=\"lead\">How far a result may be from the exact one before its one rounding to the output's type: ")
      .raw("the rule with the numbers of ")
      .id(example.case_id)
      .raw(example.fused ? ", where ops are fused" : "")
      .raw(example.attributes.empty() ? "" : " with ")
      .text(example.attributes)
      .raw(".</p>\n");
  page::DataTable bounds{"", {{"Output"}, {"Bound"}}, {}};
  for (const auto& [output, bound] : example.bounds) bounds.rows.push_back({output, bound});
  add_table(html, bounds, "Bounds");
  page::DataTable tensors{"", {{"Operand"}, {"In this case"}}, {}};
  for (const auto& [operand, tensor] : example.tensors) tensors.rows.push_back({operand, tensor});
  tensors.note = fmt::format("{} of work, {} to move at least", format_quantity(example.cost.flop, "FLOP"),
                             format_quantity(example.cost.bytes, "B"));
  add_table(html, tensors, "Example");
}

}  // namespace

std::string op_page(const OpExplanation& op) {
  Html html;
  begin(html, op.kind.name, op.doc.meaning);
  html.raw("<section>\n<h2>Operands</h2>\n");
  page::DataTable operands{"", {{"Operand"}, {"Role"}, {"Shape and type"}}, {}};
  for (const OpOperand& operand : op.operands) operands.rows.push_back({operand.name, operand.role, operand.what});
  add_table(html, operands, "Operands");
  if (!op.attributes.empty()) {
    add_section(html, "Attributes");
    add_table(html, {"", {{"Attribute"}, {"Kind"}, {"Default"}, {"Words"}}, op.attributes}, "Attributes");
  }
  add_section(html, "Formula");
  html.raw("<pre tabindex=\"0\">");
  add_lines(html, op.doc.body, "\n");
  html.raw("</pre>\n");
  if (!op.doc.source.empty()) {
    html.raw("<p class=\"note\">Source: ");
    add_lines(html, op.doc.source, " ");
    html.raw("</p>\n");
  }
  add_example(html, op.example);
  if (!op.gradient_by.empty() || !op.gradient_of.empty()) {
    add_section(html, "Gradient");
    add_links(html, "Its gradient is computed by", op.gradient_by);
    add_links(html, "It is part of the gradient of", op.gradient_of);
  }
  if (!op.example.case_id.empty()) {
    add_section(html, "Implementing it");
    html.element("p", implementer_note, "class=\"lead\"").raw("\n").element("pre", op.example.run, "tabindex=\"0\"");
    std::string workloads;
    for (const std::string& workload : op.workloads) workloads += (workloads.empty() ? "" : ", ") + workload;
    html.raw("\n").element("p", "Workloads that have it: " + workloads, "class=\"note\"").raw("\n");
  }
  html.raw("</section>\n");
  return ended(html);
}

std::string op_index_page(std::span<const OpExplanation> all) {
  Html html;
  begin(html, "The ops of gpubench", "What each computes, its operands, formula, error bound and gradient.");
  html.raw("<section>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Op</th>")
      .raw("<th scope=\"col\">What it computes</th></tr></thead><tbody>\n");
  for (const OpExplanation& op : all) {
    html.raw("<tr><td><a href=\"").text(op.kind.name).raw(".html\">").text(op.kind.name).raw("</a></td>");
    html.element("td", op.doc.meaning).raw("</tr>\n");
  }
  html.raw("</tbody></table></div>\n</section>\n");
  return ended(html);
}

}  // namespace gpubench
