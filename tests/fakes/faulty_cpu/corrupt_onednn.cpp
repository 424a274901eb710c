// oneDNN with wrong results: corrupts the outputs of primitives by the variable CORRUPT_ONEDNN:
//
//   sign     every element changes its sign
//   scale    every element is 2% larger
//   nan      one element becomes NaN
//   element  one element is doubled, only in outputs of at least a million elements
//   threads  every element changes its sign, only if OpenMP has several threads
//   launch   one element is doubled, in every CORRUPT_ONEDNN_EACH-th launch
//   random   a random element is doubled, in 1 of CORRUPT_ONEDNN_EACH launches at random, seeded by CORRUPT_ONEDNN_SEED
//
// Only outputs of at least 100,000 f32 or bf16 elements: the backend tests a library with smaller products on start.
#include <dlfcn.h>
#include <dnnl.h>
#include <omp.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

namespace {

constexpr std::size_t corrupted = 100'000, large = 1'000'000;

std::string_view wanted() {
  const char* kind = std::getenv("CORRUPT_ONEDNN");
  return kind == nullptr ? "" : kind;
}

std::uint64_t number_of(const char* variable, std::uint64_t usual) {
  const char* text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

std::uint64_t next_random() {
  static std::atomic<std::uint64_t> state{number_of("CORRUPT_ONEDNN_SEED", 1) * 0xd1342543de82ef95U};
  std::uint64_t x = state += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

bool is_due(std::string_view kind) {
  if (kind == "threads") return omp_get_max_threads() > 1;
  if (kind != "launch" && kind != "random") return true;
  static const std::uint64_t each = number_of("CORRUPT_ONEDNN_EACH", 1000);
  static std::atomic<std::uint64_t> launches{0};
  return kind == "launch" ? ++launches % each == 0 : next_random() % each == 0;
}

// bf16 is the upper half of f32.
float number(const unsigned char* data, std::size_t bytes) {
  std::uint32_t bits = 0;
  std::memcpy(reinterpret_cast<unsigned char*>(&bits) + (4 - bytes), data, bytes);
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void store(unsigned char* data, std::size_t bytes, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  std::memcpy(data, reinterpret_cast<const unsigned char*>(&bits) + (4 - bytes), bytes);
}

void corrupt(std::string_view kind, unsigned char* data, std::size_t count, std::size_t bytes) {
  if (count < corrupted) return;
  const auto multiply = [&](std::size_t at, float factor) {
    store(data + at * bytes, bytes, factor * number(data + at * bytes, bytes));
  };
  const auto all = [&](float factor) {
    for (std::size_t at = 0; at < count; ++at) multiply(at, factor);
  };
  // The largest of several: a doubled zero would stay the same.
  std::size_t middle = count / 2;
  for (std::size_t at = middle; at < count && at < count / 2 + 64; ++at) {
    if (number(data + at * bytes, bytes) > number(data + middle * bytes, bytes)) middle = at;
  }
  if (kind == "sign" || kind == "threads") all(-1.0F);
  if (kind == "scale") all(1.02F);
  if (kind == "nan") store(data + middle * bytes, bytes, std::numeric_limits<float>::quiet_NaN());
  if (kind == "element" && count >= large) multiply(middle, 2.0F);
  if (kind == "launch") multiply(middle, 2.0F);
  if (kind == "random") multiply(next_random() % count, 2.0F);
}

#if DNNL_VERSION_MAJOR >= 3
using Layout = const_dnnl_memory_desc_t;
dnnl_data_type_t type_of(Layout layout) {
  dnnl_data_type_t type = dnnl_data_type_undef;
  if (dnnl_memory_desc_query(layout, dnnl_query_data_type, &type) != dnnl_success) std::abort();
  return type;
}
#else
using Layout = const dnnl_memory_desc_t*;
dnnl_data_type_t type_of(Layout layout) { return layout->data_type; }
#endif

void corrupt(std::string_view kind, const dnnl_exec_arg_t& argument) {
  void* data = nullptr;
  Layout layout = nullptr;
  if (dnnl_memory_get_data_handle(argument.memory, &data) != dnnl_success ||
      dnnl_memory_get_memory_desc(argument.memory, &layout) != dnnl_success)
    std::abort();
  const dnnl_data_type_t type = type_of(layout);
  const std::size_t bytes = type == dnnl_f32 ? 4 : type == dnnl_bf16 ? 2 : 0;
  if (bytes == 0 || data == nullptr) return;
  corrupt(kind, static_cast<unsigned char*>(data), dnnl_memory_desc_get_size(layout) / bytes, bytes);
}

}  // namespace

extern "C" dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                                const dnnl_exec_arg_t* arguments) {
  static const auto real =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(::dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  const dnnl_status_t status = real(primitive, stream, count, arguments);
  const std::string_view kind = wanted();
  if (kind.empty() || !is_due(kind)) return status;
  for (int i = 0; i < count; ++i) {
    const int id = arguments[i].arg;
    if (id == DNNL_ARG_DST || id == DNNL_ARG_DIFF_SRC || id == DNNL_ARG_DIFF_WEIGHTS) corrupt(kind, arguments[i]);
  }
  return status;
}
