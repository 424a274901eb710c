#include "harness/page/html.h"

#include <fmt/format.h>

namespace gpubench::page {
namespace {

// Characters of a cell; longer lines are broken.
constexpr std::size_t longest_line = 120;

// The style sheet aligns columns n1, n2, ... right: one class per table is shorter than one per cell.
std::string number_columns(const DataTable& table) {
  std::string classes;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].number) classes += fmt::format("{}n{}", classes.empty() ? "" : " ", i + 1);
  }
  return classes;
}

}  // namespace

void add_table(Html& html, const DataTable& table, std::string_view label) {
  if (!table.note.empty()) html.element("p", table.note, "class=\"note\"");
  html.raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"").text(label).raw("\">");
  html.raw("<table class=\"").raw(number_columns(table)).raw("\"><thead><tr>");
  for (const TableColumn& column : table.columns) {
    html.raw("<th scope=\"col\"");
    if (!column.unit.empty()) html.raw(" data-unit=\"").text(column.unit).raw("\"");
    html.raw(">").text(column.title).raw("</th>");
  }
  html.raw("</tr></thead><tbody>\n");
  for (const std::vector<std::string>& row : table.rows) {
    html.raw("<tr>");
    for (const std::string& cell : row) html.element("td", cell, cell.size() > longest_line ? "class=\"long\"" : "");
    html.raw("</tr>\n");
  }
  html.raw("</tbody></table></div>\n");
}

void add_folded_table(Html& html, const DataTable& table, std::string_view label) {
  html.raw("<details><summary>").text(table.title).raw("</summary>\n");
  add_table(html, table, label);
  html.raw("</details>\n");
}

}  // namespace gpubench::page
