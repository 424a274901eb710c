#include "harness/report/identifying_text.h"

#include <string>

namespace gpubench {
namespace {

// What variables of OpenMP, oneDNN, CUDA and NCCL are set to; a blank around each.
constexpr std::string_view common_words =
    " true false on off yes no none all any default strict close spread master primary threads cores sockets ll_caches "
    "numa_domains active passive infinite infinity lazy eager f32 tf32 bf16 f16 f64 ring tree collnetdirect "
    "collnetchain nvls nvlstree ll ll128 simple sse41 avx avx2 avx2_vnni avx2_vnni_2 avx512_core avx512_core_vnni "
    "avx512_core_bf16 avx512_core_fp16 avx512_core_amx avx512_core_amx_fp16 avx10_1_512 avx10_1_512_amx "
    "avx10_1_512_amx_fp16 ";

// "/home/ann/x", "../x", "~/x", "~ann/x"; 0 for none. A full stop at its end is the sentence's.
std::size_t path_at(std::string_view text) {
  const std::size_t most = length_of(text, [](char c) {
    return static_cast<unsigned char>(c) > ' ' &&
           std::string_view("\"'`,;:()[]{}<>|").find(c) == std::string_view::npos;
  });
  std::string_view path = text.substr(0, most);
  while (path.ends_with('.')) path.remove_suffix(1);
  const std::size_t slash = path.find('/');
  if (path.size() < 2 || slash == std::string_view::npos) return 0;
  const bool is_path = slash == 0 || path.front() == '~' || path.starts_with("./") || path.starts_with("../");
  return is_path ? path.size() : 0;
}

// "GPU-8c3f2a10-...", "MIG-..." as NVML writes them.
std::size_t uuid_at(std::string_view text) {
  if (!text.starts_with("GPU-") && !text.starts_with("MIG-")) return 0;
  constexpr std::size_t least = 12;
  const std::size_t size = length_of(text, [](char c) { return in_word(c) || c == '-' || c == '/'; });
  return size >= least && text.substr(0, size).find_first_of("0123456789") != std::string_view::npos ? size : 0;
}

// "0000:18:00.0" of PCI, "10.0.3.17" of a network: groups of digits of the base between these marks.
std::size_t groups_at(std::string_view text, std::string_view marks, int base) {
  std::size_t at = 0;
  for (std::size_t group = 0;; ++group) {
    const std::size_t digits = length_of(text.substr(at), [base](char c) {
      return base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c >= '0' && c <= '9';
    });
    at += digits;
    if (digits == 0) return 0;
    if (group == marks.size()) return at < text.size() && in_word(text[at]) ? 0 : at;
    if (at == text.size() || text[at++] != marks[group]) return 0;
  }
}

}  // namespace

bool starts_with_name(std::string_view text, std::string_view name) {
  return text.size() >= name.size() && (text.size() == name.size() || !in_word(text[name.size()])) &&
         std::equal(name.begin(), name.end(), text.begin(),
                    [](char a, char b) { return lower_case(a) == lower_case(b); });
}

Identifying identifying_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at), before = text.substr(0, at);
  const char last = at == 0 ? ' ' : before.back();
  if (in_word(last)) {  // a compiler's -I/folder; "B/s" is no path
    const bool flag = at > 1 && before[at - 2] == '-' && (at == 2 || before[at - 3] == ' ');
    return {"path", flag && rest.front() == '/' ? path_at(rest) : 0};
  }
  if (const std::size_t size = uuid_at(rest); size > 0) return {"gpu", size};
  if (const std::size_t size = groups_at(rest, "::.", 16); size > 0) return {"bus", size};
  if (const std::size_t size = groups_at(rest, "...", 10); size > 0) return {"address", size};
  const bool goes_on = std::string_view("/.~-)*$^").find(last) != std::string_view::npos;  // "^gemm/.*/x1$" is none
  return {"path", goes_on ? 0 : path_at(rest)};
}

bool is_common_value(std::string_view value) {
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t size = length_of(value.substr(at), in_word);
    std::string word(value.substr(at, size));
    std::transform(word.begin(), word.end(), word.begin(), lower_case);
    const bool number = word.find_first_not_of("0123456789") == std::string::npos;
    if (!number && common_words.find(" " + word + " ") == std::string_view::npos) return false;
    at += size;
    if (at < value.size() && std::string_view(" ,:;.{}()*+-=|!^").find(value[at++]) == std::string_view::npos)
      return false;
  }
  return true;
}

}  // namespace gpubench
