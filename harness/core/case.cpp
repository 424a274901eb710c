#include "harness/core/case.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr std::size_t longest_id = 200;

/// In the order of an id.
constexpr std::array<std::pair<std::string_view, int RankLayout::*>, 6> layout_axes{{{"tp", &RankLayout::tp},
                                                                                     {"fsdp", &RankLayout::fsdp},
                                                                                     {"ep", &RankLayout::ep},
                                                                                     {"cp", &RankLayout::cp},
                                                                                     {"pp", &RankLayout::pp},
                                                                                     {"vp", &RankLayout::vp}}};

struct LayoutOption {
  std::string_view name;
  bool RankLayout::*given;
  int RankLayout::*of;
};
constexpr std::array<LayoutOption, 2> layout_options{
    {{"sp", &RankLayout::scatters_tokens, &RankLayout::tp}, {"ring", &RankLayout::passes_keys, &RankLayout::cp}}};

/// The axis of a mode such as "tp=2"; else empty.
std::string_view axis_in(std::string_view mode) {
  const std::string_view axis = mode.substr(0, std::min(mode.find('='), mode.size()));
  RankLayout any;
  return axis.size() < mode.size() && ranks_along(any, axis) != nullptr ? axis : std::string_view();
}

bool is_of_ranks(const std::string& mode) {
  RankLayout any;
  return option_of_ranks(any, mode) != nullptr || !axis_in(mode).empty();
}

bool in_alphabet(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("._/=,+-").find(c) != std::string_view::npos;
}

}  // namespace

std::string to_string(const Dims& dims) {
  std::string text;
  for (const auto& [name, extent] : dims) text += (text.empty() ? "" : ",") + name + "=" + std::to_string(extent);
  return text;
}

bool is_case_id(std::string_view text) {
  return !text.empty() && text.size() <= longest_id && std::all_of(text.begin(), text.end(), in_alphabet);
}

bool is_definition_hash(std::string_view text) {
  constexpr std::size_t digits = 16;
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_contender_name(std::string_view text) {
  constexpr std::size_t longest = 40;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  const auto allowed = [&](char c) { return plain(c) || c == '.' || c == '_' || c == '+' || c == '-'; };
  return !text.empty() && text.size() <= longest && plain(text.front()) && std::ranges::all_of(text, allowed);
}

std::string Case::key() const { return contender.empty() ? id() : id() + "@" + contender; }

int* ranks_along(RankLayout& parallel, std::string_view axis) {
  for (const auto& [name, ranks] : layout_axes) {
    if (name == axis) return &(parallel.*ranks);
  }
  return nullptr;
}

bool* option_of_ranks(RankLayout& parallel, std::string_view name) {
  for (const LayoutOption& option : layout_options) {
    if (option.name == name) return &(parallel.*option.given);
  }
  return nullptr;
}

std::vector<std::string> modes_of(const RankLayout& parallel) {
  std::vector<std::string> modes;
  for (const auto& [axis, ranks] : layout_axes) {
    if (parallel.*ranks > 1) modes.push_back(std::string(axis) + "=" + std::to_string(parallel.*ranks));
    for (const LayoutOption& option : layout_options) {
      if (option.of == ranks && parallel.*option.given) modes.emplace_back(option.name);
    }
  }
  return modes;
}

RankLayout rank_layout_of(const std::vector<std::string>& modes) {
  RankLayout parallel;
  for (const std::string& mode : modes) {
    if (bool* const option = option_of_ranks(parallel, mode)) *option = true;
    const std::string_view axis = axis_in(mode);
    if (axis.empty()) continue;
    int& ranks = *ranks_along(parallel, axis);
    const char* const end = mode.data() + mode.size();
    const auto [stop, error] = std::from_chars(mode.data() + axis.size() + 1, end, ranks);
    if (error != std::errc() || stop != end || ranks < 1)
      throw ProgramError("mode '" + mode + "' of a case; expected " + std::string(axis) + "=N");
  }
  return parallel;
}

Case Case::on_one_rank() const {
  Case alone = *this;
  alone.ranks = 1;
  std::erase_if(alone.modes, is_of_ranks);
  return alone;
}

std::string Case::id_without_ranks() const {
  std::string id = suite + "/" + workload + "/" + to_string(dims) + "/" + recipe;
  for (const std::string& mode : modes) {
    if (!is_of_ranks(mode)) id += "/" + mode;
  }
  return id;
}

std::string Case::id() const {
  std::string id = id_without_ranks();
  for (const std::string& mode : modes) {
    if (is_of_ranks(mode)) id += "/" + mode;
  }
  id += "/x" + std::to_string(ranks);
  if (!std::all_of(id.begin(), id.end(), in_alphabet))
    throw ProgramError("case id '" + id + "' has a character outside [a-z0-9._/=,+x-]");
  if (id.size() > longest_id) throw ProgramError("case id '" + id + "' is longer than 200 characters");
  return id;
}

std::int64_t Case::dim(std::string_view name) const {
  for (const auto& [key, extent] : dims) {
    if (key == name) return extent;
  }
  throw ProgramError("case '" + id_without_ranks() + "' has no dimension '" + std::string(name) + "'");
}

bool Case::has_mode(std::string_view mode) const { return std::find(modes.begin(), modes.end(), mode) != modes.end(); }

}  // namespace gpubench
