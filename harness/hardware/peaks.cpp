#include "harness/hardware/peaks.h"

#include <algorithm>
#include <string>
#include <vector>

namespace gpubench {
namespace {

constexpr double tera = 1e12;
constexpr double giga = 1e9;
constexpr double hertz_per_mhz = 1e6;
// Longer than any name that a driver gives.
constexpr std::size_t longest_name = 128;

// Lower-case runs of letters and digits; everything else separates.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool part = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (part && !inside) words.emplace_back();
    if (part) words.back() += lower;
    inside = part;
  }
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Who made it, as drivers write it: says nothing about which card it is.
bool is_brand(const std::string& word) {
  return word == "nvidia" || word == "tesla" || word == "amd" || word == "instinct";
}

bool fits(const DeviceRow& row, const std::vector<std::string>& device) {
  const std::vector<std::string> wanted = words_of(row.words);
  const std::vector<std::string> allowed = words_of(row.may_have);
  const bool complete = std::all_of(wanted.begin(), wanted.end(), [&](const auto& word) { return has(device, word); });
  return complete && std::all_of(device.begin(), device.end(), [&](const std::string& word) {
           return is_brand(word) || has(wanted, word) || has(allowed, word);
         });
}

Figure scaled(const DeviceRow& row, const Figure& cell, double unit) {
  return {cell.low * unit, cell.high * unit, cell.confidence.value_or(row.confidence),
          cell.source.empty() ? row.source : cell.source};
}

// Dense operations per clock of one SM, by compute capability: professional card, GeForce. 0: not known.
struct PerClock {
  int capability;
  Rate rate;
  double professional;
  double geforce;
};

constexpr PerClock per_clock[] = {
    {70, Rate::fp64, 64, 0},        {70, Rate::fp32, 128, 0},         {70, Rate::fp16, 1024, 0},
    {80, Rate::fp64, 64, 0},        {80, Rate::fp64_tensor, 128, 0},  {80, Rate::fp32, 128, 0},
    {80, Rate::tf32, 1024, 0},      {80, Rate::fp16, 2048, 0},        {80, Rate::bf16, 2048, 0},
    {80, Rate::int8, 4096, 0},      {86, Rate::fp32, 256, 256},       {86, Rate::tf32, 512, 256},
    {86, Rate::fp16, 1024, 512},    {86, Rate::bf16, 1024, 512},      {89, Rate::fp32, 256, 256},
    {89, Rate::tf32, 512, 256},     {89, Rate::fp16, 1024, 512},      {89, Rate::bf16, 1024, 512},
    {89, Rate::fp8, 2048, 1024},    {90, Rate::fp64, 128, 0},         {90, Rate::fp64_tensor, 256, 0},
    {90, Rate::fp32, 256, 0},       {90, Rate::tf32, 2048, 0},        {90, Rate::fp16, 4096, 0},
    {90, Rate::bf16, 4096, 0},      {90, Rate::fp8, 8192, 0},         {90, Rate::int8, 8192, 0},
    {100, Rate::fp64, 128, 0},      {100, Rate::fp64_tensor, 128, 0}, {100, Rate::fp32, 256, 0},
    {100, Rate::tf32, 4096, 0},     {100, Rate::fp16, 8192, 0},       {100, Rate::bf16, 8192, 0},
    {100, Rate::fp8, 16384, 0},     {100, Rate::fp4, 32768, 0},       {103, Rate::fp64, 4, 0},
    {103, Rate::fp64_tensor, 4, 0}, {103, Rate::fp32, 256, 0},        {103, Rate::tf32, 4096, 0},
    {103, Rate::fp16, 8192, 0},     {103, Rate::bf16, 8192, 0},       {103, Rate::fp8, 16384, 0},
    {120, Rate::fp32, 256, 256},    {120, Rate::tf32, 0, 256},        {120, Rate::fp16, 0, 512},
    {120, Rate::bf16, 0, 512},      {120, Rate::fp8, 0, 1024},
};

}  // namespace

std::string_view name(Rate rate) {
  static constexpr std::array<std::string_view, rate_count> names{"fp64", "fp64 tensor", "fp32", "tf32", "fp16",
                                                                  "bf16", "fp8",         "fp4",  "int8"};
  return names.at(static_cast<std::size_t>(rate));
}

std::string_view name(Confidence confidence) {
  switch (confidence) {
    case Confidence::measured: return "measured";
    case Confidence::sourced: return "sourced";
    case Confidence::datasheet: return "datasheet";
    case Confidence::conflict: return "conflict";
  }
  return "?";
}

const DeviceRow* find_device(std::string_view device_name, int units) {
  if (device_name.size() > longest_name) return nullptr;
  const std::vector<std::string> words = words_of(device_name);
  for (const DeviceRow& row : device_rows()) {
    if (fits(row, words) && units >= row.least_units && units <= row.most_units) return &row;
  }
  return nullptr;
}

std::optional<Figure> peak_rate(const DeviceRow& row, Rate rate) {
  const Figure& cell = row.tera.at(static_cast<std::size_t>(rate));
  return cell.known() ? std::optional(scaled(row, cell, tera)) : std::nullopt;
}

std::optional<Figure> peak_bandwidth(const DeviceRow& row) {
  return row.memory_gb_per_s.known() ? std::optional(scaled(row, row.memory_gb_per_s, giga)) : std::nullopt;
}

std::optional<Figure> peak_link(const DeviceRow& row) {
  constexpr double directions = 2.0;
  return row.link_gb_per_s.known() ? std::optional(scaled(row, row.link_gb_per_s, giga / directions)) : std::nullopt;
}

bool is_geforce(std::string_view device_name) { return has(words_of(device_name.substr(0, longest_name)), "geforce"); }

std::optional<double> operations_per_clock(int capability, bool geforce, Rate rate) {
  for (const PerClock& entry : per_clock) {
    if (entry.capability != capability || entry.rate != rate) continue;
    const double operations = geforce ? entry.geforce : entry.professional;
    return operations > 0.0 ? std::optional(operations) : std::nullopt;
  }
  return std::nullopt;
}

double bandwidth_at(double memory_mhz, double bus_bits) { return memory_mhz * hertz_per_mhz * bus_bits / 8.0 * 2.0; }

}  // namespace gpubench
