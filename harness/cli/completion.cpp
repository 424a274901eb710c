#include <fmt/format.h>

#include "harness/cli/verb.h"
#include "harness/core/text/text_table.h"

namespace gpubench {
namespace {

// A verb, its flags and its argument; without an argument neither words nor files are completed.
struct Completed {
  const Verb* verb;
  std::vector<Flag> flags;
  Flag argument;
};

std::vector<Completed> completed_verbs(std::span<const std::string> suites) {
  std::vector<Completed> all;
  for (const Verb& verb : verbs()) {
    if (verb.hidden) continue;
    Completed& one = all.emplace_back(Completed{&verb, {}, {}});
    for (Flag& flag : verb.flags(suites)) {
      if (flag.is_argument())
        one.argument = std::move(flag);
      else if (flag.is_visible())
        one.flags.push_back(std::move(flag));
    }
  }
  return all;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// Quotes for any shell: single quotes prevent every expansion.
std::string in_quotes(std::string_view text) { return "'" + replaced(std::string(text), "'", "'\\''") + "'"; }

// bash: one function for all verbs.

constexpr std::string_view bash_head =
    R"(# bash completion for gpubench: gpubench completion bash > ~/.local/share/bash-completion/completions/gpubench
_gpubench() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=run words= kind= head=
  COMPREPLY=()
  # "--flag=value" comes as three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then verb=${COMP_WORDS[1]}; fi
  case "$verb $prev" in
)";

constexpr std::string_view bash_tail = R"(  esac
  if [[ -z $kind ]]; then
    if [[ $cur == -* ]]; then
      kind=words
      case "$verb" in
@FLAGS@      esac
    elif ((COMP_CWORD == 1)); then
      kind=words words=@VERBS@
    else
      case "$verb" in
@ARGUMENTS@      esac
    fi
  fi
  # Of a list with commas the last word is completed.
  if [[ $kind == list ]]; then
    [[ $cur == *,* ]] && head=${cur%,*}, cur=${cur##*,}
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words" -- "$cur")
    return
  fi
  [[ -n $words ]] && mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  local path
  case "$kind" in
    *file) while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -f -- "$cur"); compopt -o filenames 2>/dev/null ;;
    *folder) while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null ;;
  esac
}
complete -F _gpubench gpubench
)";

std::string bash_kind(const Flag& flag) {
  if (flag.value == ValueKind::file) return "file";
  if (flag.value == ValueKind::folder) return "folder";
  return flag.takes == Takes::list ? "list" : "words";
}

std::string bash(std::span<const std::string> suites) {
  std::string values;
  std::string flag_names;
  std::string arguments;
  std::vector<std::string> verb_names;
  for (const auto& [verb, flags, argument] : completed_verbs(suites)) {
    verb_names.emplace_back(verb->name);
    std::vector<std::string> names;
    for (const Flag& flag : flags) {
      std::string pattern;
      for (const std::string& name : flag.names()) {
        names.push_back(name);
        pattern += fmt::format("{}\"{} {}\"", pattern.empty() ? "" : "|", verb->name, name);
      }
      if (flag.value != ValueKind::none)
        values +=
            fmt::format("    {}) kind={} words={} ;;\n", pattern, bash_kind(flag), in_quotes(joined(flag.words, " ")));
    }
    flag_names += fmt::format("        {}) words={} ;;\n", verb->name, in_quotes(joined(names, " ")));
    if (argument.value == ValueKind::file || !argument.words.empty())
      arguments +=
          fmt::format("        {}) kind={} words={} ;;\n", verb->name,
                      argument.value == ValueKind::file ? "file" : "words", in_quotes(joined(argument.words, " ")));
  }
  std::string text = std::string(bash_head) + values + std::string(bash_tail);
  text = replaced(text, "@FLAGS@", flag_names);
  text = replaced(text, "@ARGUMENTS@", arguments);
  return replaced(text, "@VERBS@", in_quotes(joined(verb_names, " ")));
}

// zsh: _arguments with the flags of the verb.

std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const Flag& flag) {
  if (flag.value == ValueKind::file) return "_files";
  if (flag.value == ValueKind::folder) return "_files -/";
  if (flag.words.empty()) return " ";
  return flag.takes == Takes::list ? fmt::format("_sequence compadd - {}", joined(flag.words, " "))
                                   : fmt::format("({})", joined(flag.words, " "));
}

std::string zsh(std::span<const std::string> suites) {
  std::string text =
      "#compdef gpubench\n# zsh completion for gpubench: gpubench completion zsh > "
      "\"${fpath[1]}/_gpubench\"\n_gpubench() {\n"
      "  local verb=run\n  local -a verbs flags\n  verbs=(\n";
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) text += fmt::format("    {}\n", in_quotes(fmt::format("{}:{}", verb.name, verb.summary)));
  }
  text +=
      "  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n    _describe verb verbs\n    return\n  fi\n"
      "  if [[ $words[2] != -* ]]; then\n    verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n  fi\n  case $verb "
      "in\n";
  for (const auto& [verb, flags, argument] : completed_verbs(suites)) {
    text += fmt::format("    {})\n      flags=(\n", verb->name);
    for (const Flag& flag : flags) {
      for (const std::string& name : flag.names()) {
        std::string spec = fmt::format("*{}[{}]", name, zsh_text(flag.text));
        if (flag.value != ValueKind::none) spec += fmt::format(":{}:{}", zsh_text(flag.type), zsh_action(flag));
        text += "        " + in_quotes(spec) + "\n";
      }
    }
    if (argument.value == ValueKind::file) text += "        '*:file:_files'\n";
    if (argument.value != ValueKind::file && !argument.words.empty())
      text += "        " + in_quotes(fmt::format("*:word:({})", joined(argument.words, " "))) + "\n";
    text += "      )\n      ;;\n";
  }
  return text + "  esac\n  _arguments -S $flags\n}\n_gpubench \"$@\"\n";
}

// fish: a rule per flag.

std::string fish_text(std::string_view text) {
  return "'" + replaced(replaced(std::string(text), "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_rule(const Verb& verb, const Flag& flag) {
  std::string rule = fmt::format("complete -c gpubench -n '__gpubench_verb {}'", verb.name);
  for (const std::string& name : flag.names())
    rule += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  const std::string words = flag.words.empty() ? "" : " -a " + fish_text(joined(flag.words, " "));
  switch (flag.value) {
    case ValueKind::none: break;
    case ValueKind::text:
      rule += flag.takes == Takes::list && !words.empty()
                  ? " -x -a " + fish_text(fmt::format("(__fish_complete_list , 'string split \" \" \"{}\"')",
                                                      joined(flag.words, " ")))
                  : " -x" + words;
      break;
    case ValueKind::file: rule += " -r -F"; break;
    case ValueKind::folder:
      rule += " -x -a '(__fish_complete_directories)" +
              std::string(flag.words.empty() ? "'" : " " + joined(flag.words, " ") + "'");
      break;
  }
  return rule + " -d " + fish_text(flag.text) + "\n";
}

std::string fish(std::span<const std::string> suites) {
  std::string text =
      R"(# fish completion for gpubench: gpubench completion fish > ~/.config/fish/completions/gpubench.fish
function __gpubench_verb
  set -l words (commandline -opc)
  if test (count $words) -gt 1; and not string match -q -- '-*' $words[2]
    test $words[2] = $argv[1]
  else
    test run = $argv[1]
  end
end
complete -c gpubench -f
)";
  for (const auto& [verb, flags, argument] : completed_verbs(suites)) {
    text += fmt::format("complete -c gpubench -n __fish_use_subcommand -a {} -d {}\n", verb->name,
                        fish_text(verb->summary));
    for (const Flag& flag : flags) text += fish_rule(*verb, flag);
    if (argument.value == ValueKind::file)
      text += fmt::format("complete -c gpubench -n '__gpubench_verb {}' -F\n", verb->name);
    if (!argument.words.empty())
      text += fmt::format("complete -c gpubench -n '__gpubench_verb {}; and not __fish_use_subcommand' -a {}\n",
                          verb->name, fish_text(joined(argument.words, " ")));
  }
  return text;
}

}  // namespace

std::string completion_text(Shell shell, std::span<const std::string> suites) {
  switch (shell) {
    case Shell::bash: return bash(suites);
    case Shell::zsh: return zsh(suites);
    case Shell::fish: return fish(suites);
  }
  return "";
}

}  // namespace gpubench
