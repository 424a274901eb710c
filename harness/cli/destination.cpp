#include "harness/cli/destination.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <tuple>
#include <utility>

#include "harness/cli/resumption.h"
#include "harness/core/error.h"
#include "harness/report/atomic_file.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// A folder that is not there yet: the time, with a number behind it where two runs start in one second.
std::string fresh_folder(std::time_t now) {
  std::tm utc{};
  gmtime_r(&now, &utc);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  std::string folder = fmt::format("gpubench-out/{}", stamp);
  make_folder("gpubench-out");
  for (int number = 2; !std::filesystem::create_directory(folder); ++number) {
    folder = fmt::format("gpubench-out/{}-{}", stamp, number);
  }
  return folder;
}

// Standard output is one document, and a file one form: the second writer would undo the first.
class Places {
 public:
  explicit Places(const WriteRules& rules) : rules_(rules) {}
  /// Proves that it can be written.
  void take(const char* flag, const std::string& file) {
    if (is_written_through(file)) return require_writable(file, rules_);  // several may go to /dev/null
    const auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(file));
    for (const auto& [other, taken] : taken_) {
      if (taken == path) throw UsageError(fmt::format("{}: {} writes {} already", flag, other, visible(file)));
    }
    require_writable(file, rules_);
    taken_.emplace_back(flag, path);
  }
  void take_stdout(const char* flag) {
    if (!stdout_flag_.empty())
      throw UsageError(
          fmt::format("{}: {} takes standard output already; one flag at most can be given -", flag, stdout_flag_));
    stdout_flag_ = flag;
  }

 private:
  WriteRules rules_;
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

// Each error names the flag that stands before it.
template <class Open>
Destination opened(const Options& options, const WriteRules& rules, const Open& open) {
  Destination destination;
  Places places(rules);
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
  } catch (const std::bad_alloc&) {  // of which no flag is to blame
    throw;
  } catch (const std::exception& e) {
    throw UsageError(fmt::format("{}: {}", flag, e.what()));
  }
  return destination;
}

}  // namespace

Destination open_destination(const Options& options, std::time_t now) {
  return opened(options, options.writing, [&](Destination& destination, Places& places, const char*& flag) {
    if (!options.out && options.json) {
      const std::string& file = destination.json_file;
      if (!file.empty() && !is_written_through(file)) destination.journal_file = file + std::string(journal_ending);
      return;
    }
    flag = options.out ? "--out" : "the output folder (choose one with --out)";
    if (options.out) make_folder(*options.out);
    const std::filesystem::path folder = options.out ? *options.out : fresh_folder(now);
    destination.file = (folder / "report.json").string();
    // --json may name it too: it is the same document.
    if (destination.file != destination.json_file) places.take(flag, destination.file);
    destination.page_file = (folder / "report.html").string();
    places.take(flag, destination.page_file);
    destination.journal_file = (folder / journal_name).string();
  });
}

Destination open_report_destination(const Options& options, const std::string& page_file, const WriteRules& rules) {
  return opened(options, rules, [&](Destination& destination, Places& places, const char*& flag) {
    flag = "--output";
    destination.page_file = page_file;
    places.take(flag, destination.page_file);
  });
}

}  // namespace gpubench
