#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/verb.h"
#include "harness/core/text/text_table.h"

namespace gpubench {
namespace {

// Escapes roff: a backslash starts an escape, a plain hyphen is not a minus that can be copied, and a line must not
// begin as a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  return out;
}

// Wraps at 80 columns of source, with room for escapes.
std::string paragraph(std::string_view text) {
  constexpr int width = 65;
  const std::string lines = wrap(text, width, 0);
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    out += roff(std::string_view(lines).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

// Keeps line breaks and blanks.
std::string verbatim(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += roff(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

std::string tagged(const std::string& tag, std::string_view text) {
  return fmt::format(".TP\n{}\n{}", tag, paragraph(text));
}

std::string tag_of(const Flag& flag) {
  std::string tag;
  for (const std::string& name : flag.names()) tag += fmt::format("{}\\fB{}\\fR", tag.empty() ? "" : ", ", roff(name));
  return flag.type.empty() ? tag : fmt::format("{} \\fI{}\\fR", tag, roff(flag.type));
}

std::string verb_section(const Verb& verb) {
  std::string text = fmt::format(
      ".SS gpubench {}\n.B gpubench {}\n{}\n.PP\n{}", verb.name, verb.name,
      verb.arguments.empty() ? ".br" : ".I \"" + roff(verb.arguments) + "\"",
      paragraph(fmt::format("{}.{}{}", verb.summary, verb.description.empty() ? "" : " ", verb.description)));
  for (const Flag& flag : verb.flags({})) {
    if (flag.is_visible()) text += tagged(tag_of(flag), flag.text);
  }
  if (!verb.examples.empty()) text += ".PP\nExamples:\n.PP\n.nf\n" + verbatim(verb.examples) + ".fi\n";
  return text;
}

}  // namespace

std::string manual_page(std::string_view version) {
  std::string text = fmt::format(".TH GPUBENCH 1 \"\" \"gpubench {}\" \"User Commands\"\n", roff(version));
  text += ".SH NAME\ngpubench \\- benchmark and conformance suite for GPU training\n";
  text += ".SH SYNOPSIS\n.B gpubench\n[\\fIVERB\\fR] [\\fIflags\\fR]\n";
  text += ".SH DESCRIPTION\n" + paragraph(
                                    "Times training workloads and checks the timed buffers against an fp64 textbook "
                                    "with derived error bounds. No number without a verdict. Without a verb: run.");
  text += ".SH VERBS\n";
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) text += verb_section(verb);
  }
  text += ".SH ENVIRONMENT\n";
  text += tagged("\\fBGPUBENCH_\\fIFLAG\\fR",
                 "Replaces a flag that is not given: GPUBENCH_TIER=smoke for --tier smoke. Switches are on or off.");
  text += tagged("\\fBNO_COLOR\\fR, \\fBFORCE_COLOR\\fR", "Colour off, colour on, unless --color says otherwise.");
  text += tagged("\\fBCOLUMNS\\fR", "Width of lines. Default: the terminal's; 100 for run without a terminal.");
  text += tagged("\\fBGITHUB_ACTIONS\\fR, \\fBGITHUB_STEP_SUMMARY\\fR", "See --github.");
  text += ".SH EXIT STATUS\n";
  for (const int code : exit_codes::all) text += tagged(fmt::format("\\fB{}\\fR", code), explain_exit_code(code));
  return text;
}

}  // namespace gpubench
