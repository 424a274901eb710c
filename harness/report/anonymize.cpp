#include "harness/report/anonymize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

#include "harness/core/backend.h"
#include "harness/core/text/text_table.h"

namespace gpubench {
namespace {

using Words = std::vector<std::string>;

// Letters, digits, '_' and bytes outside ASCII.
bool is_word_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || byte >= 0x80;
}

constexpr char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Length of the prefix whose characters belong.
template <class Belongs>
std::size_t length_of(std::string_view text, const Belongs& belongs) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), belongs) - text.begin());
}

// Values of variables of OpenMP, oneDNN, CUDA and NCCL, between blanks.
constexpr std::string_view common_words =
    " true false on off yes no none all any default strict close spread master primary threads cores sockets ll_caches "
    "numa_domains active passive infinite infinity lazy eager f32 tf32 bf16 f16 f64 ring tree collnetdirect "
    "collnetchain nvls nvlstree ll ll128 simple sse41 avx avx2 avx2_vnni avx2_vnni_2 avx512_core avx512_core_vnni "
    "avx512_core_bf16 avx512_core_fp16 avx512_core_amx avx512_core_amx_fp16 avx10_1_512 avx10_1_512_amx "
    "avx10_1_512_amx_fp16 ";

// A full stop at the end belongs to the sentence.
std::string_view path_word(std::string_view text) {
  const std::size_t most = length_of(text, [](char c) {
    return static_cast<unsigned char>(c) > ' ' &&
           std::string_view("\"'`,;:()[]{}<>|").find(c) == std::string_view::npos;
  });
  std::string_view path = text.substr(0, most);
  while (path.ends_with('.')) path.remove_suffix(1);
  return path;
}

// "/home/ann/x", "../x", "~/x", "~ann/x"; 0: none.
std::size_t path_at(std::string_view text) {
  const std::string_view path = path_word(text);
  const std::size_t slash = path.find('/');
  if (path.size() < 2 || slash == std::string_view::npos) return 0;
  const bool is_path = slash == 0 || path.front() == '~' || path.starts_with("./") || path.starts_with("../");
  return is_path ? path.size() : 0;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), lower_case);
  return lower;
}

Words parts_of(std::string_view path) {
  const std::string lower = in_lower_case(path);
  const std::vector<std::string_view> parts = split(lower, '/');
  return {parts.begin(), parts.end()};
}

std::string_view extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot + 1);
}

// "kernel.py", "libx.so"; not "x1@my.impl", "k=0.5" and "conv/resnet.first".
bool has_extension(std::string_view name) {
  constexpr std::string_view known[] = {"c",    "cc",  "cfg",  "conf",  "cpp", "csv", "cu",   "gz", "h",   "hpp",
                                        "html", "ini", "json", "jsonl", "log", "md",  "npy",  "py", "pyc", "sh",
                                        "so",   "svg", "toml", "txt",   "whl", "xml", "yaml", "yml"};
  return name.find_first_of("@=") == std::string_view::npos &&
         std::find(std::begin(known), std::end(known), extension_of(name)) != std::end(known);
}

// "ann.lee@mail.example.com"; 0: none.
std::size_t mail_at(std::string_view text) {
  const std::size_t local =
      length_of(text, [](char c) { return is_word_character(c) || c == '.' || c == '+' || c == '-'; });
  if (local == 0 || local == text.size() || text[local] != '@') return 0;
  std::string_view domain = text.substr(local + 1);
  domain = domain.substr(0, length_of(domain, [](char c) { return is_word_character(c) || c == '.' || c == '-'; }));
  while (domain.ends_with('.') || domain.ends_with('-')) domain.remove_suffix(1);
  const std::string_view top = extension_of(domain);
  const auto is_letter = [](char c) { return lower_case(c) >= 'a' && lower_case(c) <= 'z'; };
  return !top.empty() && std::all_of(top.begin(), top.end(), is_letter) ? local + 1 + domain.size() : 0;
}

// "GPU-8c3f2a10-...", "MIG-..." as NVML prints them.
std::size_t uuid_at(std::string_view text) {
  if (!text.starts_with("GPU-") && !text.starts_with("MIG-")) return 0;
  constexpr std::size_t least = 12;
  const std::size_t size = length_of(text, [](char c) { return is_word_character(c) || c == '-' || c == '/'; });
  return size >= least && text.substr(0, size).find_first_of("0123456789") != std::string_view::npos ? size : 0;
}

// Digits in the base, in groups between the marks: "0000:18:00.0" of PCI, "10.0.3.17" of a network.
std::size_t groups_at(std::string_view text, std::string_view marks, int base) {
  std::size_t at = 0;
  for (std::size_t group = 0;; ++group) {
    const std::size_t digits = length_of(text.substr(at), [base](char c) {
      return base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c >= '0' && c <= '9';
    });
    at += digits;
    if (digits == 0) return 0;
    if (group == marks.size()) return at < text.size() && is_word_character(text[at]) ? 0 : at;
    if (at == text.size() || text[at++] != marks[group]) return 0;
  }
}

struct Identifying {
  std::string_view kind;  // "path", "gpu" (a UUID), "bus" (PCI), "address" (IPv4)
  std::size_t size = 0;   // in bytes; 0: none
};

// Whether `text` starts with this name as a whole word; ignores case, as host names do.
bool starts_with_name(std::string_view text, std::string_view name) {
  return text.size() >= name.size() && (text.size() == name.size() || !is_word_character(text[name.size()])) &&
         std::equal(name.begin(), name.end(), text.begin(),
                    [](char a, char b) { return lower_case(a) == lower_case(b); });
}

bool has_name(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((at == 0 || !is_word_character(text[at - 1])) && starts_with_name(text.substr(at), name)) return true;
  }
  return false;
}

// `at`: a position in the text.
Identifying identifying_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at), before = text.substr(0, at);
  const char last = at == 0 ? ' ' : before.back();
  if (is_word_character(last)) {  // a compiler's -I/folder; "B/s" is not a path
    const bool flag = at > 1 && before[at - 2] == '-' && (at == 2 || before[at - 3] == ' ');
    return {"path", flag && rest.front() == '/' ? path_at(rest) : 0};
  }
  if (const std::size_t size = uuid_at(rest); size > 0) return {"gpu", size};
  if (const std::size_t size = groups_at(rest, "::.", 16); size > 0) return {"bus", size};
  if (const std::size_t size = groups_at(rest, "...", 10); size > 0) return {"address", size};
  const bool continues = std::string_view("/.~-)*$^").find(last) != std::string_view::npos;  // "^gemm/.*/x1$" is not a
                                                                                             // path
  return {"path", continues ? 0 : path_at(rest)};
}

// Only numbers and common words ("close", "avx2", ":4096:8").
bool is_common_value(std::string_view value) {
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t size = length_of(value.substr(at), is_word_character);
    const std::string word = in_lower_case(value.substr(at, size));
    const bool number = word.find_first_not_of("0123456789") == std::string::npos;
    if (!number && common_words.find(" " + word + " ") == std::string_view::npos) return false;
    at += size;
    if (at < value.size() && std::string_view(" ,:;.{}()*+-=|!^").find(value[at++]) == std::string_view::npos)
      return false;
  }
  return true;
}

// Properties that all devices of a kind share, or that the user sets.
constexpr std::string_view kept_properties[] = {"threads",
                                                "instruction_sets",
                                                "own_kernels",
                                                "ordinal",
                                                "l2_bytes",
                                                "driver_cuda",
                                                "ranks",
                                                device_property::compute_capability,
                                                device_property::max_sm_mhz,
                                                device_property::max_memory_mhz,
                                                device_property::memory_bus_bits,
                                                device_property::power_limit_w,
                                                device_property::ecc,
                                                device_property::mig,
                                                device_property::driver,
                                                device_property::cpu_isa,
                                                device_property::cpu_isa_reason,
                                                device_property::rank_places};

constexpr std::string_view flag_variable_prefix = "GPUBENCH_";

bool one_of(const auto& known, std::string_view word) {
  return std::find(std::begin(known), std::end(known), word) != std::end(known);
}

std::string flag_of(std::string_view variable) {
  std::string flag = "--";
  for (const char c : variable.substr(flag_variable_prefix.size())) flag += c == '_' ? '-' : lower_case(c);
  return flag;
}

Words words_of(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

}  // namespace

Anonymizer::Anonymizer(const HashKey& key, KeptFlags flags, const Report& report, Words users)
    : key_(key), flags_(std::move(flags)) {
  know_host(report.host.host_name);
  for (const DeviceInfo& device : report.run.devices) {
    know("gpu", gpubench::property(device, device_property::uuid));
    know("bus", gpubench::property(device, device_property::pci_bus_id));
    for (const RankPlace& place : rank_places(device)) know_host(place.host);
  }
  know_users_in(report.host.executable);
  for (const std::string& word : report.run.argv) know_users_in(word);
  if (report.run.implementations) {  // case ids contain them
    for (const ImplementationFile& one : *report.run.implementations) flags_.words.push_back(in_lower_case(one.name));
  }
  // Other reports are compared by facts, so names of output files must not change them.
  for (const auto& [name, value] : report.run.build) facts_.push_back(value);
  for (const DeviceInfo& device : report.run.devices) {
    facts_.push_back(device.name);
    for (const auto& [name, value] : device.properties) facts_.push_back(value);
    for (const auto& [name, version] : device.libraries) facts_.insert(facts_.end(), {name, version});
  }
  std::erase_if(facts_, [](const std::string& fact) { return fact.find('/') != std::string::npos; });
  know_files_in(report.run.argv);
  for (const auto& [name, value] : report.run.env) {
    if (name.starts_with(flag_variable_prefix)) know_files_in({flag_of(name), value});
  }
  if (report.run.shapes) know_file(report.run.shapes->file);
  for (const auto* pairs : {&report.run.build, &report.run.env}) {
    for (const auto& [name, value] : *pairs) know_users_in(value);
  }
  for (const std::string& user : users) {
    if (user != "root") know("user", user);
  }
  std::stable_sort(names_.begin(), names_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

std::string Anonymizer::alias(std::string_view kind, std::string_view name) const {
  return fmt::format("{}-{:016x}", kind, keyed_hash(key_, fmt::format("{} {}", kind, name)));
}

void Anonymizer::know(std::string_view kind, const std::string& name) {
  if (!name.empty()) names_.emplace_back(name, alias(kind, name));
}

// Also the short form of the host name.
void Anonymizer::know_host(const std::string& name) {
  know("host", name);
  if (const std::size_t dot = name.find('.'); dot > 0 && dot != std::string::npos)
    names_.emplace_back(name.substr(0, dot), alias("host", name));
}

void Anonymizer::know_users_in(std::string_view text) {
  for (const std::string_view homes : {"/home/", "/Users/"}) {
    for (std::size_t at = text.find(homes); at != std::string_view::npos; at = text.find(homes, at)) {
      at += homes.size();
      const std::string_view rest = text.substr(at);
      know("user", std::string(rest.substr(
                       0, length_of(rest, [](char c) { return is_word_character(c) || c == '-' || c == '.'; }))));
    }
  }
}

void Anonymizer::know_files_in(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string flag = words[i].substr(0, equals);
    const std::string letter = words[i].substr(0, 2);  // -oFILE
    if (words[i].size() > 2 && (one_of(flags_.files, letter) || one_of(flags_.outputs, letter))) {
      know_file(std::string_view(words[i]).substr(2));
      continue;
    }
    if (!one_of(flags_.files, flag) && !one_of(flags_.outputs, flag)) continue;
    const std::string_view given = equals != std::string::npos ? std::string_view(words[i]).substr(equals + 1)
                                   : i + 1 < words.size()      ? std::string_view(words[i + 1])
                                                               : "";
    know_file(given);
    if (const std::size_t name = given.find('='); name != std::string_view::npos) know_file(given.substr(name + 1));
  }
}

// Skips short parts and numbers, which occur in ordinary text.
void Anonymizer::know_file(std::string_view path) {
  constexpr std::size_t shortest = 3;
  for (const std::string& part : parts_of(path)) {
    const std::string stem = has_extension(part) ? part.substr(0, part.rfind('.')) : part;
    for (const std::string& name : {part, stem}) {
      if (name.size() < shortest || name.find_first_not_of("0123456789.-_") == std::string::npos ||
          one_of(flags_.words, name) || one_of(parts_, name) || is_common_value(name) ||
          std::any_of(facts_.begin(), facts_.end(), [&](const auto& fact) { return has_name(fact, name); }))
        continue;
      know("path", name);
      parts_.push_back(name);
    }
  }
}

// "results/acme/x.json"; 0: none, as in "gemm/linear/m=8/f32/x1" and "GB/s".
std::size_t Anonymizer::relative_path_at(std::string_view text) const {
  const std::string_view path = path_word(text);
  if (path.find('/') == std::string_view::npos || !is_word_character(path.front())) return 0;
  const Words parts = parts_of(path);
  const bool known = std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return one_of(parts_, part); });
  return known || has_extension(parts.back()) ? path.size() : 0;
}

std::string Anonymizer::text(std::string_view text) const {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool begins = at == 0 || !is_word_character(text[at - 1]);
    const auto named = std::find_if(names_.begin(), names_.end(),
                                    [&](const auto& one) { return begins && starts_with_name(rest, one.first); });
    std::size_t size = 1;
    std::string instead(rest.substr(0, 1));
    // "impl:loops/tiles.avx" is a plan of an implementation.
    const bool continues = !begins ||
                           (at > 0 && std::string_view("/.~-)*$^@").find(text[at - 1]) != std::string::npos) ||
                           text.substr(0, at).ends_with("impl:");
    if (const std::size_t mail = continues ? 0 : mail_at(rest); mail > 0) {
      size = mail;
      instead = alias("mail", rest.substr(0, mail));
    } else if (const std::size_t file = continues ? 0 : relative_path_at(rest); file > 0) {
      size = file;
      instead = path(rest.substr(0, file));
    } else if (named != names_.end()) {
      size = named->first.size();
      instead = named->second;
    } else if (const Identifying found = identifying_at(text, at); found.size > 0) {
      size = found.size;
      instead = alias(found.kind, rest.substr(0, size));
    }
    result += instead;
    at += size;
  }
  return result;
}

Words Anonymizer::command(const Words& words) const {
  Words kept;
  std::size_t at = 0;
  for (; at < words.size() && (words[at] == "gpubench" || words[at] == "run" || words[at] == "calibrate"); ++at)
    kept.push_back(words[at]);
  while (at < words.size()) {
    const std::string& word = words[at++];
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    if (one_of(flags_.switches, word)) kept.push_back(word);
    const bool is_file = one_of(flags_.files, flag);
    if (!is_file && !one_of(flags_.values, flag)) continue;
    const bool assigned = equals != std::string::npos;
    if (!assigned && at == words.size()) break;
    const std::string given = assigned ? word.substr(equals + 1) : words[at++];
    const std::string shown = is_file ? (given == "off" ? given : path(given)) : text(given);
    if (assigned) {
      kept.push_back(fmt::format("{}={}", flag, shown));
    } else {
      kept.insert(kept.end(), {flag, shown});
    }
  }
  return kept;
}

std::string Anonymizer::variable(const std::string& name, const std::string& value) const {
  if (name.starts_with(flag_variable_prefix)) {
    const std::string flag = flag_of(name);
    if (one_of(flags_.switches, flag)) return is_common_value(value) ? value : alias("value", value);
    const Words kept = command({flag, value});
    return kept.empty() ? alias("value", value) : kept.back();
  }
  if (is_common_value(value)) return value;
  if (name != "CUDA_VISIBLE_DEVICES") return alias("value", value);
  const std::vector<std::string_view> named = split(value, ',');
  Words devices(named.begin(), named.end());
  for (std::string& device : devices) {
    if (!is_common_value(device)) device = alias("gpu", device);
  }
  return fmt::format("{}", fmt::join(devices, ","));
}

std::string Anonymizer::property(const std::string& name, const std::string& value) const {
  if (name == device_property::uuid) return alias("gpu", value);
  if (name == device_property::pci_bus_id) return alias("bus", value);
  return one_of(kept_properties, name) ? text(value) : alias("value", value);
}

void Anonymizer::context(Report& report) const {
  report.host.host_name = alias("host", report.host.host_name);
  report.host.executable = "gpubench";
  RunContext& run = report.run;
  for (auto& [name, value] : run.build) value = text(value);
  run.argv = command(run.argv);
  if (run.shapes) {
    run.shapes->file = path(run.shapes->file);
    for (ShapesExcept& except : run.shapes->excepts) except.reason = text(except.reason);
  }
  if (run.implementations) {
    for (ImplementationFile& file : *run.implementations) file.version = text(file.version);
  }
  for (auto& [name, value] : run.env) value = variable(name, value);
  for (DeviceInfo& device : run.devices) {
    device.name = text(device.name);
    for (auto& [name, value] : device.properties) value = property(name, value);
    for (auto& [name, value] : device.libraries) value = text(value);
  }
}

void Anonymizer::record(CaseRecord& record) const {
  record.reason = text(record.reason);
  for (OpParity& op : record.parity.ops) op.reason = text(op.reason);
  if (record.parity.arithmetic) {
    for (PlanArithmetic& plan : *record.parity.arithmetic) plan.reason = text(plan.reason);
  }
  for (RoundRecord& round : record.rounds) round.note = text(round.note);
  if (record.unfinished) {
    for (RoundRecord& round : record.unfinished->rounds) round.note = text(round.note);
  }
  record.rerun = fmt::format("{}", fmt::join(command(words_of(record.rerun)), " "));
}

Report anonymized(Report report, const HashKey& key, KeptFlags flags, Words users) {
  const Anonymizer anonymizer(key, std::move(flags), report, std::move(users));
  anonymizer.context(report);
  for (CaseRecord& record : report.cases) anonymizer.record(record);
  return report;
}

}  // namespace gpubench
