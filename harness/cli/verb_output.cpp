#include "harness/cli/verb_output.h"

#include <fmt/format.h>

#include <utility>

#include "harness/cli/device.h"
#include "harness/core/error.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

constexpr std::chrono::seconds silence{30};  ///< between lines, if standard error is not a terminal
constexpr const char* erase_line = "\r\x1b[K";

}  // namespace

std::string Completion::interrupted() const {
  return fmt::format("{} after {:.4g} of {:.4g} {}{}", trouble.empty() ? "interrupted" : "ended", done, requested, unit,
                     trouble.empty() ? "" : ": its process " + trouble);
}

void Completion::add_to(Json& document) const {
  document["complete"] = complete;
  document["done"] = done;
  document["requested"] = requested;
  document["unit"] = unit;
  if (!trouble.empty()) document["trouble"] = trouble;
}

Completion completion_of(std::size_t begun, std::size_t requested, std::string_view unit, int signal) {
  const std::size_t done = signal != 0 && begun > 0 ? begun - 1 : begun;
  return {signal == 0, static_cast<double>(done), static_cast<double>(requested), unit};
}

void StatusLine::show(const std::string& now) {
  if (environment_.err_is_terminal) {
    environment_.err << erase_line << visible(now).substr(0, static_cast<std::size_t>(environment_.columns) - 1)
                     << std::flush;
    shown_ = true;
  } else if (const auto time = std::chrono::steady_clock::now(); time - told_ > silence) {
    environment_.err << visible(now) << std::endl;
    told_ = time;
  }
}

void StatusLine::erase() {
  if (std::exchange(shown_, false)) environment_.err << erase_line << std::flush;
}

void fail_to_write(std::string_view flag, const WriteError& error) {
  const std::string text = fmt::format("{}{}{}", flag, flag.empty() ? "" : ": ", error.what());
  if (error.is_disk_error()) throw CannotMeasure(text);
  throw UsageError(text);
}

void write_listed(const std::string& path, std::string_view text, const WriteRules& rules,
                  const Environment& environment) {
  write_atomically(path, text, rules);
  environment.err << fmt::format("{}: {}\n", visible(path), format_quantity(static_cast<double>(text.size()), "B"));
}

ResultFile::ResultFile(std::string flag, std::string path, const WriteRules& rules, const Environment& environment)
    : path_(std::move(path)), rules_(rules), environment_(environment) {
  if (path_.empty() || is_stdout()) return;
  try {
    require_writable(path_, rules_);
  } catch (const WriteError& e) {
    fail_to_write(flag, e);
  }
}

void ResultFile::write(const Json& document) const {
  if (!path_.empty()) write(dump(document, 1) + "\n");
}

void ResultFile::write(const std::string& text) const {
  if (path_.empty() || text.empty()) return;
  if (is_stdout()) {
    environment_.out << text << std::flush;
    return;
  }
  try {
    write_atomically(path_, text, rules_);
  } catch (const WriteError& e) {
    throw CannotMeasure(e.what());
  }
}

}  // namespace gpubench
