#include <fmt/format.h>

#include <utility>

#include "harness/cli/explain.h"
#include "harness/core/text/quantity.h"
#include "harness/page/document.h"

namespace gpubench {
namespace {

using page::Html;

page::Document document_of(std::string_view heading, std::string_view meaning) {
  page::Document document;
  document.title = fmt::format("{}: gpubench", heading);
  document.made_by.raw("<a href=\"index.html\">gpubench ops</a>");
  document.heading = heading;
  document.about = meaning;
  document.interactive = false;
  return document;
}

page::Html& add_section(page::Document& document, const std::string& key, const std::string& title) {
  return document.sections.emplace_back(page::Section{key, title, {{}}}).parts.back().tables;
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

// Html::text() would show line breaks as escapes.
void add_lines(Html& html, std::string_view lines, std::string_view between) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = lines.find('\n');
    html.text(lines.substr(0, end)).raw(end == std::string_view::npos ? "" : between);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
}

void add_example(page::Document& document, const OpExample& example) {
  Html& html = add_section(document, "bound", "Bound");
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
  tensors.note = fmt::format("{} of work, at least {} to move", format_quantity(example.cost.flop, "FLOP"),
                             format_quantity(example.cost.bytes, "B"));
  add_table(html, tensors, "Example");
}

void add_formula(page::Document& document, const OpDoc& doc) {
  Html& html = add_section(document, "formula", "Formula");
  html.raw("<pre tabindex=\"0\">");
  add_lines(html, doc.body, "\n");
  html.raw("</pre>\n");
  if (doc.source.empty()) return;
  html.raw("<p class=\"note\">Source: ");
  add_lines(html, doc.source, " ");
  html.raw("</p>\n");
}

}  // namespace

std::string op_page(const OpExplanation& op) {
  page::Document document = document_of(op.kind.name, op.doc.meaning);
  page::DataTable operands{"", {{"Operand"}, {"Role"}, {"Shape and type"}}, {}};
  for (const OpOperand& operand : op.operands) operands.rows.push_back({operand.name, operand.role, operand.what});
  add_table(add_section(document, "operands", "Operands"), operands, "Operands");
  if (!op.attributes.empty())
    add_table(add_section(document, "attributes", "Attributes"),
              {"", {{"Attribute"}, {"Kind"}, {"Default"}, {"Words"}}, op.attributes}, "Attributes");
  add_formula(document, op.doc);
  add_example(document, op.example);
  if (!op.gradient_by.empty() || !op.gradient_of.empty()) {
    Html& html = add_section(document, "gradient", "Gradient");
    add_links(html, "Its gradient is computed by", op.gradient_by);
    add_links(html, "It is part of the gradient of", op.gradient_of);
  }
  if (!op.example.case_id.empty()) {
    Html& html = add_section(document, "implementing", "Implementing it");
    html.element("p", implementer_note, "class=\"lead\"").raw("\n").element("pre", op.example.run, "tabindex=\"0\"");
    std::string workloads;
    for (const std::string& workload : op.workloads) workloads += (workloads.empty() ? "" : ", ") + workload;
    html.raw("\n").element("p", "Workloads with this op: " + workloads, "class=\"note\"").raw("\n");
  }
  return html_of(std::move(document));
}

std::string op_index_page(std::span<const OpExplanation> all) {
  page::Document document =
      document_of("The ops of gpubench", "What each computes, its operands, formula, error bound and gradient.");
  document.opening.raw("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Op</th>")
      .raw("<th scope=\"col\">What it computes</th></tr></thead><tbody>\n");
  for (const OpExplanation& op : all) {
    document.opening.raw("<tr><td><a href=\"").text(op.kind.name).raw(".html\">").text(op.kind.name).raw("</a></td>");
    document.opening.element("td", op.doc.meaning).raw("</tr>\n");
  }
  document.opening.raw("</tbody></table></div>\n");
  return html_of(std::move(document));
}

}  // namespace gpubench
