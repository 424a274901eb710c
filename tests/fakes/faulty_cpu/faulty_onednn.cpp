// oneDNN on a processor that announces instruction sets it cannot run: above FAULTY_CPU_ABOVE (a dnnl_cpu_isa_t), every
// primitive raises SIGILL, or, with FAULTY_CPU_KIND=wrong, writes a wrong first element.
#include <dlfcn.h>
#include <dnnl.h>

#include <cstdlib>
#include <cstring>

namespace {

bool is_above_what_works() {
  const char* limit = std::getenv("FAULTY_CPU_ABOVE");
  if (limit == nullptr) return false;
  const auto works = static_cast<unsigned>(std::strtoul(limit, nullptr, 0));
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & ~works) != 0;
}

// Changes the upper bits of the exponent, so that the number changes for every type.
void spoil(const dnnl_exec_arg_t& argument) {
  void* data = nullptr;
  if (dnnl_memory_get_data_handle(argument.memory, &data) != dnnl_success) std::abort();
  auto* bytes = static_cast<unsigned char*>(data);
  bytes[1] ^= 0x40U;
  bytes[3] ^= 0x40U;
}

}  // namespace

extern "C" dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                                const dnnl_exec_arg_t* arguments) {
  static const auto real =
      reinterpret_cast<decltype(&dnnl_primitive_execute)>(::dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  const bool faulty = is_above_what_works();
  const char* kind = std::getenv("FAULTY_CPU_KIND");
  const bool only_wrong = kind != nullptr && std::strcmp(kind, "wrong") == 0;
  if (faulty && !only_wrong) __builtin_trap();  // ud2 on x86
  const dnnl_status_t status = real(primitive, stream, count, arguments);
  for (int i = 0; faulty && i < count; ++i) {
    const int id = arguments[i].arg;
    if (id == DNNL_ARG_DST || id == DNNL_ARG_DIFF_SRC || id == DNNL_ARG_DIFF_WEIGHTS) spoil(arguments[i]);
  }
  return status;
}
