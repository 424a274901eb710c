// bf16 products on AMX tiles: 2 x 2 tiles of f32 sums (32 x 32) from two tiles of each operand.
// Linux grants tile registers on request: https://docs.kernel.org/arch/x86/xstate.html
#include "reference/cpu/block_matmul.h"

#include "reference/cpu/usable_isa.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpubench::cpu::amx {
namespace {

struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// Static: the intrinsic declares only the first bytes as read, so a local one might not be stored entirely.
constexpr TileShapes whole_tiles{};

bool request_amx() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool has_bf16 = ((d >> 22U) & 1U) != 0;
  const bool has_tiles = ((d >> 24U) & 1U) != 0;
  if (!has_bf16 || !has_tiles) return false;
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

bool announced() {
  static const bool answer = request_amx();
  return answer;
}

[[gnu::target("amx-tile")]] void load_tile_shapes() { _tile_loadconfig(&whole_tiles); }

[[gnu::target("amx-tile")]] void release_tiles() { _tile_release(); }

// Not inlined: tile intrinsics do not declare the memory that they read; a call does.
[[gnu::noinline, gnu::target("amx-tile,amx-bf16")]] void multiply(const BlockExtents& extents, Rows<const bf16> a,
                                                                  const bf16* b, Rows<float> c, bool accumulate) {
  const auto a_bytes = static_cast<std::size_t>(a.stride) * sizeof(bf16);
  const auto c_bytes = static_cast<std::size_t>(c.stride) * sizeof(float);
  constexpr std::size_t b_bytes = 2 * block_grain * sizeof(bf16);
  for (std::int64_t n = 0; n < extents.n; n += block_grain) {
    const bf16* panel = b + n * extents.packed_k;
    for (std::int64_t m = 0; m < extents.m; m += block_grain) {
      float* c_top = c[m] + n;
      float* c_bottom = c[m + 16] + n;
      const bf16* a_top = a[m];
      const bf16* a_bottom = a[m + 16];
      if (accumulate) {
        _tile_loadd(0, c_top, c_bytes);
        _tile_loadd(1, c_top + 16, c_bytes);
        _tile_loadd(2, c_bottom, c_bytes);
        _tile_loadd(3, c_bottom + 16, c_bytes);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      for (std::int64_t k = 0; k < extents.k; k += block_grain) {
        const bf16* pairs = panel + k * block_grain;
        _tile_loadd(6, pairs, b_bytes);
        _tile_loadd(4, a_top + k, a_bytes);
        _tile_loadd(7, pairs + 32, b_bytes);
        _tile_loadd(5, a_bottom + k, a_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(0, c_top, c_bytes);
      _tile_stored(1, c_top + 16, c_bytes);
      _tile_stored(2, c_bottom, c_bytes);
      _tile_stored(3, c_bottom + 16, c_bytes);
    }
  }
}

}  // namespace gpubench::cpu::amx

#else

namespace gpubench::cpu::amx {

bool announced() { return false; }
void load_tile_shapes() {}
void release_tiles() {}
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate) {
  multiply_widened(extents, a, b, c, accumulate);
}

}  // namespace gpubench::cpu::amx

#endif

namespace gpubench::cpu::amx {

bool has_amx() {
  static const bool answer = announced() && own_kernels_usable(own_isa);
  return answer;
}

}  // namespace gpubench::cpu::amx
