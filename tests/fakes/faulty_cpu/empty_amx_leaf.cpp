// A virtual machine that has the CPUID flags of AMX but an empty leaf 0x1D, which describes the tiles. CPUID faults
// (arch_prctl(2), ARCH_SET_CPUID; needs cpuid_fault in /proc/cpuinfo), and a handler answers. Threads and forks inherit
// the setting; started programs get it by LD_PRELOAD.
#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>

namespace {

constexpr unsigned tile_information = 0x1D;

long let_cpuid_run(bool yes) {
  constexpr long set_cpuid = 0x1012;  // ARCH_SET_CPUID
  return ::syscall(SYS_arch_prctl, set_cpuid, yes ? 1L : 0L);
}

void answer(int /*signal*/, siginfo_t* /*info*/, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  if (code[0] != 0x0F || code[1] != 0xA2) {  // another fault: restore the default action
    (void)std::signal(SIGSEGV, SIG_DFL);
    return;
  }
  const auto leaf = static_cast<unsigned>(registers[REG_RAX]);
  unsigned a = 0, b = 0, c = 0, d = 0;
  (void)let_cpuid_run(true);
  __cpuid_count(leaf, static_cast<unsigned>(registers[REG_RCX]), a, b, c, d);
  (void)let_cpuid_run(false);
  if (leaf == tile_information) a = b = c = d = 0;
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

[[gnu::constructor]] void begin() {
  struct sigaction action {};
  action.sa_sigaction = answer;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, nullptr);
  // Tests must be able to detect that this does not work.
  if (let_cpuid_run(false) != 0) ::_exit(99);
}

}  // namespace

#endif
