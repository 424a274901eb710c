#include "harness/report/github.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "harness/report/atomic_file.h"
#include "harness/report/case_order.h"
#include "harness/report/console.h"
#include "harness/report/escape.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr std::size_t most_annotations = 9;
constexpr std::size_t most_message_bytes = 4096;

std::string command(AnnotationKind kind, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}\n", kind == AnnotationKind::error ? "error" : "warning", github_property(title),
                     github_message(message));
}

}  // namespace

std::string annotations_text(std::span<const Annotation> annotations, std::string_view rest) {
  std::string text;
  for (const AnnotationKind kind : {AnnotationKind::error, AnnotationKind::warning}) {
    std::size_t count = 0;
    for (const Annotation& one : annotations) {
      if (one.kind == kind && ++count <= most_annotations)
        text += command(kind, one.title, shortened(one.message, most_message_bytes));
    }
    if (count > most_annotations) text += command(kind, rest, fmt::format("and {} more", count - most_annotations));
  }
  return text;
}

std::vector<Annotation> annotations_of(const Report& report) {
  std::vector<Annotation> annotations;
  for (const CaseRecord* record : worst_first(report.cases)) {
    if (!went_wrong(record->verdict)) break;
    annotations.push_back({AnnotationKind::error, fmt::format("gpubench {}", name(record->verdict)),
                           fmt::format("{}: {}{}{}", record->id, record->reason,
                                       record->rerun.empty() ? "" : "; rerun: ", record->rerun)});
  }
  const Totals totals = totals_of(report.cases);
  const auto warn = [&](std::string message) {
    annotations.push_back({AnnotationKind::warning, "gpubench", std::move(message)});
  };
  if (!report.run.complete) warn("the run was interrupted; its report is partial");
  if (const int unverified = totals.count(Verdict::unverified); unverified > 0)
    warn(fmt::format("{} cases were not verified (--check off); their numbers are no results", unverified));
  if (totals.count(Verdict::unsupported) + totals.count(Verdict::skipped) == totals.cases)
    warn("nothing ran: every case is unsupported or was skipped");
  return annotations;
}

void append_summary(const std::string& path, const std::function<std::string(std::size_t)>& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool there = fs::exists(status);
  // A pipe would keep us waiting for a reader.
  if (there && !fs::is_regular_file(status)) throw WriteError(fmt::format("{}: is no file", visible(path)));
  const std::uintmax_t size = there ? fs::file_size(path, error) : 0;
  if (size >= most_summary_bytes && there) return;
  std::ofstream file(path, std::ios::app | std::ios::binary);
  if (file) file << text(most_summary_bytes - size) << std::flush;
  if (file) return;
  const int reason = errno;
  file.close();
  if (there) fs::resize_file(path, size, error);
  throw WriteError(fmt::format("{}: add the summary: {}", visible(path), std::generic_category().message(reason)));
}

}  // namespace gpubench
