#include "harness/hardware/peaks.h"

#include <algorithm>
#include <string>
#include <vector>

namespace gpubench {
namespace {

// Sources are repositories with paths, or sites; "vendor's datasheet" marks figures that were not read again for this
// table.
constexpr std::string_view sheet = "vendor's datasheet";
constexpr std::string_view engineering = "stas00/ml-engineering compute/accelerator/README.md";
constexpr std::string_view blackwell =
    "chipsandcheese.com on B200; stas00/ml-engineering compute/accelerator/README.md";
constexpr std::string_view cards = "sysrqmts.com, hmc-tech.com, spheron.network";
constexpr std::string_view rocm = "rocm.docs.amd.com reference/gpu-specs";

constexpr Figure none{};

constexpr Figure either(double low, double high, std::string_view where) {
  return {low, high, Confidence::conflict, where};
}
constexpr Figure seen(double value) { return {value, value, Confidence::measured, "read from the runtime"}; }

constexpr std::string_view garden = "glennklockwood.com/garden/processors: NVIDIA has printed both ends";
constexpr std::string_view fp4_two_ways = "NVIDIA prints 12600 to 13500 for fp4 and 15000 for nvfp4";
constexpr std::string_view module_power = "set per module by its vendor";
constexpr std::string_view two_slots = "depends on the board";

using Confidence::datasheet;
using Confidence::sourced;

// clang-format off
constexpr DeviceRow rows[] = {
    //                                                        fp64  fp64 TC fp32  tf32  fp16   bf16   fp8   fp4   int8
    {"V100 SXM2", "v100 sxm2", "16gb 32gb", 70, 80, 80,      {7.8,  none,  15.7, none, 125,   none,  none, none, 62.8},
     either(16, 32, "two versions"), 900, 6, 300, 3, 300, datasheet, sheet},
    {"V100 PCIe", "v100 pcie", "16gb 32gb", 70, 80, 80,      {7.0,  none,  14.0, none, 112,   none,  none, none, 56},
     either(16, 32, "two versions"), 900, 6, none, 3, 250, datasheet, sheet},
    {"A10", "a10", "", 86, 72, 72,                           {0.98, none,  31.2, 62.5, 125,   125,   none, none, 250},
     24, 600, 6, none, 4, 150, sourced, cards},
    {"A30", "a30", "", 80, 56, 56,                           {5.2,  10.3,  10.3, 82,   165,   165,   none, none, 330},
     24, 933, 24, 200, 4, 165, datasheet, sheet},
    {"A100 40GB PCIe", "a100 pcie 40gb", "", 80, 108, 108,   {9.7,  19.5,  19.5, 156,  312,   312,   none, none, 624},
     40, 1555, 40, 600, 4, 250, sourced, engineering},
    {"A100 80GB PCIe", "a100 pcie 80gb", "", 80, 108, 108,   {9.7,  19.5,  19.5, 156,  312,   312,   none, none, 624},
     80, 1935, 40, 600, 4, 300, sourced, engineering},
    {"A100 40GB SXM", "a100 sxm4 40gb", "", 80, 108, 108,    {9.7,  19.5,  19.5, 156,  312,   312,   none, none, 624},
     40, 1555, 40, 600, 4, 400, sourced, engineering},
    {"A100 80GB SXM", "a100 sxm4 80gb", "", 80, 108, 108,    {9.7,  19.5,  19.5, 156,  312,   312,   none, none, 624},
     80, 2039, 40, 600, 4, 400, sourced, engineering},
    {"L4", "l4", "", 89, 58, 58,                             {0.49, none,  30.3, 60,   121,   121,   242,  none, 242},
     24, 300, 48, none, 4, 72, datasheet, sheet},
    {"L40S", "l40s", "", 89, 142, 142,                       {1.43, none,  91.6, 183,  362,   362,   733,  none, 733},
     48, 864, 96, none, 4, 350, sourced, engineering},
    {"RTX 3090", "geforce rtx 3090", "", 86, 82, 82,         {0.56, none,  35.6, 35.6, 71,    71,    none, none, 284},
     24, 936, 6, 112, 4, 350, datasheet, sheet},
    {"RTX 4090", "geforce rtx 4090", "", 89, 128, 128,       {1.29, none,  82.6, 82.6, 165.2, 165.2, 330.3, none, 660.6},
     24, 1008, 72, none, 4, 450, sourced, cards},
    {"RTX 5090", "geforce rtx 5090", "", 120, 170, 170,      {1.64, none,  104.8, 104.8, 209.5, 209.5, 419, 1676, 838},
     32, 1792, 96, none, 5, 575, sourced, cards},
    {"H100 PCIe", "h100 pcie", "80gb", 90, 114, 114,         {26,   51,    51,   378,  756,   756,   1513, none, 1513},
     80, 2039, 50, 600, 5, 350, sourced, engineering},
    {"H100 SXM", "h100 hbm3", "80gb sxm sxm5", 90, 132, 132, {34,   67,    67,   494.5, 989,  989,   1979, none, 1979},
     80, 3352, 50, 900, 5, 700, sourced, engineering},
    {"H100 NVL", "h100 nvl", "94gb", 90, 132, 132,           {30,   60,    60,   417.5, 835,  835,   1671, none, 1671},
     94, 3938, 50, 600, 5, 400, datasheet, sheet},
    {"H200 SXM", "h200", "141gb hbm3e sxm sxm5", 90, 132, 132, {34, 67,    67,   494.5, 989,  989,   1979, none, 1979},
     141, 4800, seen(60), 900, 5, 700, sourced, engineering},
    {"H200 NVL", "h200 nvl", "141gb hbm3e", 90, 132, 132,    {30,   60,    60,   417.5, 835,  835,   1671, none, 1671},
     141, 4800, 60, 900, 5, 600, datasheet, sheet},
    {"GH200 96GB", "gh200", "480gb 120gb", 90, 132, 132,     {34,   67,    67,   494.5, 989,  989,   1979, none, 1979},
     96, 4000, 60, 900, 5, either(450, 1000, module_power), sourced, engineering},
    {"GH200 144GB", "gh200 144g", "hbm3e", 90, 132, 132,     {34,   67,    67,   494.5, 989,  989,   1979, none, 1979},
     144, 4900, 60, 900, 5, either(450, 1000, module_power), sourced, engineering},
    {"B100", "b100", "", 100, 148, 148,                      {30,   30,    60,   875,  1750,  1750,  3500, 7000, 3500},
     192, 8000, 126, 1800, 5, 700, datasheet, sheet},
    {"B200", "b200", "180gb", 100, 148, 148,
     {either(37, 40, garden), either(37, 40, garden), either(75, 80, garden), 1125, 2250, 2250, 4500, 9000, 4500},
     either(180, 192, "usable and physical"), 8000, 126, 1800, 5, 1000, sourced, blackwell},
    {"GB200", "gb200", "", 100, 148, 152,
     {either(40, 45, garden), either(40, 45, garden), either(80, 90, garden), 1250, 2500, 2500, 5000, 10000, 5000},
     186, 8000, 126, 1800, either(5, 6, two_slots), 1200, sourced, engineering},
    // int8 of B300 and GB300 is left out: published values range from 4500 to a small fraction of it.
    {"B300", "b300", "sxm6 ac", 103, 148, 152,
     {1.25, 1.25, either(75, 80, garden), 1125, 2250, 2250, 4500, either(12600, 15000, fp4_two_ways), none},
     288, 8000, 126, 1800, 6, either(1000, 1400, module_power), sourced, engineering},
    {"GB300", "gb300", "", 103, 152, 160,                    {1.3,  1.3,   80,   1250, 2500,  2500,  5000, 15000, none},
     either(279, 288, "usable and physical"), 8000, 126, 1800, 6, 1400, sourced, engineering},
    {"MI250X", "mi250x", "oam", 0, 220, 220,                 {47.9, 95.7,  47.9, none, 383,   383,   none, none, 383},
     128, 3277, 16, 800, 4, 560, sourced, rocm},
    {"MI300X", "mi300x", "oam", 0, 304, 304,                 {81.7, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, none, 2614.9},
     192, 5300, 32, 896, 5, 750, sourced, rocm},
    {"MI325X", "mi325x", "oam", 0, 304, 304,                 {81.7, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, none, 2614.9},
     256, 6000, 32, 896, 5, 1000, sourced, rocm},
    {"MI355X", "mi355x", "oam", 0, 256, 256,                 {78.6, 78.6,  157.3, none, 2516.6, 2516.6, 5033, 10066, 5033},
     288, 8000, 32, 1075, 5, 1400, sourced, rocm},
};
// clang-format on

}  // namespace

std::span<const DeviceRow> device_rows() { return rows; }

namespace {

constexpr double tera = 1e12;
constexpr double giga = 1e9;
constexpr double hertz_per_mhz = 1e6;
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

// The vendor's name, which does not identify a card.
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

// Dense operations per clock of one SM, by compute capability: professional card, GeForce. 0: unknown.
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

const DeviceRow* find_device(std::string_view device_name, int units) {
  if (device_name.size() > longest_name) return nullptr;
  const std::vector<std::string> words = words_of(device_name);
  for (const DeviceRow& row : device_rows()) {
    if (fits(row, words) && units >= row.min_units && units <= row.max_units) return &row;
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
