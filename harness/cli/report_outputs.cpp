#include "harness/cli/report_outputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <tuple>
#include <utility>

#include "harness/cli/recorder.h"
#include "harness/cli/verb_output.h"
#include "harness/core/error.h"
#include "harness/core/file/atomic_file.h"
#include "harness/core/text/visible_text.h"
#include "harness/page/report_page.h"
#include "harness/report/export.h"

namespace gpubench {
namespace {

bool writes_github(const Options& options, const Environment& environment) {
  if (options.github != GithubMode::automatic) return options.github == GithubMode::on;
  return environment.variable("GITHUB_ACTIONS") == "true";
}

}  // namespace

std::string report_text(const Report& report, ReportForm form, Detail detail) {
  switch (form) {
    case ReportForm::json: return report_json_text(report, detail);
    case ReportForm::junit: return junit_text(report);
    case ReportForm::csv: return exported_csv(report);
    case ReportForm::markdown: return markdown_text(report, max_summary_bytes);
  }
  return "";
}

ReportOutputs::ReportOutputs(Report report, const Options& options, const Destination& destination,
                             const Environment& environment)
    : report_(std::move(report)), options_(options), destination_(destination), environment_(environment) {}

void ReportOutputs::lose(std::string_view what, const std::exception& why) {
  lost_ = true;
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&why) != nullptr;  // its what() is the type's name
  complaints_.push_back(fmt::format("{} is lost: {}", what, no_memory ? "out of memory" : visible(why.what())));
}

bool ReportOutputs::write_file(const std::string& file, ReportForm form) {
  try {
    environment_.out.flush();  // `file` may be another name of standard output
    write_atomically(file, report_text(report_, form, options_.detail),
                     destination_.folders.rules(file, options_.writing));
    return true;
  } catch (const std::exception& e) {  // WriteError; ExportError for a number that CSV cannot hold
    lose("the report", e);
    return false;
  }
}

bool ReportOutputs::write_to_stdout() {
  try {
    if (environment_.out << report_text(report_, *destination_.on_stdout, options_.detail) << std::flush) return true;
    lose("the report", WriteError("standard output: cannot write"));
  } catch (const ExportError& e) {
    lose("the report", e);
  }
  return false;
}

void ReportOutputs::write_summary() {
  const std::string path = environment_.variable("GITHUB_STEP_SUMMARY");
  if (path.empty() || !writes_github(options_, environment_)) return;
  try {
    append_summary(path, [&](std::size_t room) { return markdown_text(report_, room); });
  } catch (const WriteError& e) {
    complaints_.push_back(fmt::format("the summary in $GITHUB_STEP_SUMMARY is lost: {}", e.what()));
    lost_ = lost_ || options_.github == GithubMode::on;
  }
}

void ReportOutputs::write() {
  bool kept = false;
  std::vector<std::string> files{destination_.file};
  if (destination_.json_file != destination_.file) files.push_back(destination_.json_file);
  for (const std::string& file : files) {
    if (file.empty() || !write_file(file, ReportForm::json)) continue;
    kept = true;
    if (report_path_.empty()) report_path_ = file;
  }
  for (const FormPlace& place : destination_.forms) write_file(place.file, place.form);
  if (destination_.on_stdout && write_to_stdout()) kept = kept || destination_.on_stdout == ReportForm::json;
  if (!kept) rescue();
  write_page();
  write_summary();
}

void ReportOutputs::rescue() {
  const std::string text = report_text(report_, ReportForm::json, options_.detail);
  const std::string wanted = environment_.variable("TMPDIR");
  try {
    report_path_ = write_new_file(wanted.empty() ? "/tmp" : wanted, "gpubench-report-", ".json", text);
    complaints_.push_back(fmt::format("the report is in {} instead", visible(report_path_)));
  } catch (const WriteError& e) {
    environment_.err << text << std::flush;
    complaints_.push_back(
        fmt::format("no other place could be written: {}; it is printed above, on standard error", e.what()));
  }
}

void ReportOutputs::write_page() {
  if (destination_.page_file.empty()) return;
  try {
    const std::string& file = destination_.page_file;
    write_atomically(file, page::report_page({&report_, 1}), destination_.folders.rules(file, options_.writing));
    page_path_ = file;
  } catch (const std::exception& e) {
    lose("the page", e);
  }
}

std::string ReportOutputs::annotations() const {
  return writes_github(options_, environment_) ? annotations_text(annotations_of(report_), "gpubench") : "";
}

namespace {

// A new folder named after the time, with a number if two runs start in the same second.
std::string fresh_folder(std::time_t now, Descriptor& opened) {
  std::tm utc{};
  gmtime_r(&now, &utc);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  const std::string all = "gpubench-out";
  make_folder(all);
  const Descriptor above = open_folder(all, all);
  std::string name = stamp;
  for (int number = 2; ::mkdirat(above.get(), name.c_str(), 0777) != 0; ++number) {
    if (errno != EEXIST) cannot_write(all, "create a folder there", errno);
    name = fmt::format("{}-{}", stamp, number);
  }
  opened = Descriptor(::openat(above.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.get() < 0) cannot_write(all, "open a folder there", errno);
  return all + "/" + name;
}

// Rejects two outputs in one place: the second would overwrite the first.
class Places {
 public:
  Places(const WriteRules& rules, HeldFolders& folders) : rules_(rules), folders_(folders) {}
  void take(const char* flag, const std::string& file) {
    if (is_written_through(file)) return require_writable(file, rules_);  // several may go to /dev/null
    const auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(file));
    for (const auto& [other, taken] : taken_) {
      if (taken == path) throw UsageError(fmt::format("{}: {} writes {} already", flag, other, visible(file)));
    }
    folders_.hold(file);
    require_writable(file, folders_.rules(file, rules_));
    taken_.emplace_back(flag, path);
  }
  void take_stdout(const char* flag) {
    if (!stdout_flag_.empty())
      throw UsageError(
          fmt::format("{}: {} already uses standard output; at most one flag can be -", flag, stdout_flag_));
    stdout_flag_ = flag;
  }

 private:
  WriteRules rules_;
  HeldFolders& folders_;
  std::vector<std::pair<std::string, std::filesystem::path>> taken_;
  std::string stdout_flag_;
};

void place(Destination& destination, Places& places, const char* flag, ReportForm form,
           const std::optional<std::string>& file) {
  if (!file) return;
  if (*file == "-") {
    places.take_stdout(flag);
    destination.on_stdout = form;
    return;
  }
  places.take(flag, *file);
  if (form == ReportForm::json) {
    destination.json_file = *file;
  } else {
    destination.forms.push_back({form, *file});
  }
}

template <class Open>
Destination opened(const Options& options, const WriteRules& rules, HeldFolders held, const Open& open) {
  Destination destination;
  destination.folders = std::move(held);
  Places places(rules, destination.folders);
  const char* flag = "--json";
  try {
    place(destination, places, flag, ReportForm::json, options.json);
    for (const auto& [name, form, file] : {std::tuple{"--junit", ReportForm::junit, options.junit},
                                           {"--csv", ReportForm::csv, options.csv},
                                           {"--markdown", ReportForm::markdown, options.markdown}}) {
      flag = name;
      place(destination, places, flag, form, file);
    }
    open(destination, places, flag);
  } catch (const UsageError&) {
    throw;
  } catch (const std::bad_alloc&) {  // not an error of a flag
    throw;
  } catch (const WriteError& e) {
    fail_to_write(flag, e);
  } catch (const std::exception& e) {
    throw UsageError(fmt::format("{}: {}", flag, e.what()));
  }
  return destination;
}

}  // namespace

Destination open_destination(const Options& options, std::time_t now, HeldFolders held) {
  const auto open = [&](Destination& destination, Places& places, const char*& flag) {
    if (!options.out && options.json) {
      const std::string& file = destination.json_file;
      if (!file.empty() && !is_written_through(file)) destination.journal_file = file + std::string(journal_ending);
      return;
    }
    flag = options.out ? "--out" : "the output folder (choose one with --out)";
    if (options.out) make_folder(*options.out);
    Descriptor fresh;
    const std::filesystem::path folder = options.out ? *options.out : fresh_folder(now, fresh);
    destination.file = (folder / "report.json").string();
    if (fresh.get() >= 0) destination.folders.hold(destination.file, std::move(fresh));
    // --json may name the same file: it is the same document.
    if (destination.file != destination.json_file) places.take(flag, destination.file);
    destination.page_file = (folder / "report.html").string();
    places.take(flag, destination.page_file);
    destination.journal_file = (folder / journal_name).string();
  };
  return opened(options, options.writing, std::move(held), open);
}

Destination open_report_destination(const Options& options, const std::string& page_file, const WriteRules& rules) {
  return opened(options, rules, {}, [&](Destination& destination, Places& places, const char*& flag) {
    flag = "--output";
    destination.page_file = page_file;
    places.take(flag, destination.page_file);
  });
}

}  // namespace gpubench
