#include <algorithm>
#include <array>
#include <string>

#include "harness/core/hash.h"
#include "reference/ops/attention.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/gemm.h"
#include "reference/ops/pool.h"
#include "reference/ops/quantize.h"
#include "tests/reference/ops/oracle/programs.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace {

ValueId f32(Program& p, const std::string& name, const Shape& shape) { return source(p, name, DType::f32, shape); }

void add_gemm(OraclePrograms& all, const std::string& name, const Gemm& g, std::int64_t batch,
              const GemmExtents& extents) {
  add_differentiated(all, "gemm " + name, [&](Program& p) -> OracleForward {
    const auto [one, m, n, k] = extents;
    const auto shape = [&](bool swapped, std::int64_t rows, std::int64_t columns) {
      if (swapped) std::swap(rows, columns);
      return batch == 0 ? Shape{rows, columns} : Shape{batch, rows, columns};
    };
    const ValueId a = f32(p, "a", shape(g.transpose_a, m, k)), b = f32(p, "b", shape(g.transpose_b, k, n));
    OracleForward forward{{}, {a, b}};
    GemmOperands operands;
    if (g.bias) forward.wanted.push_back(*(operands.bias = f32(p, "bias", {n})));
    forward.y = {gemm(p, g, f32_math, "c", a, b, operands).c};
    return forward;
  });
}

}  // namespace

void add_matrix_programs(OraclePrograms& all) {
  for (const DType to : {DType::f8_e4m3, DType::f8_e5m2}) {
    const std::string type(name(to));
    const auto scaled = [&](Program& p, const std::string& name, const Shape& shape, double factor) {
      const ValueId scale = p.add(tensor(name + ".scale", DType::f32, {1}, Role::scalar, Fill::constant(factor)));
      return quantize(p, {to}, f32_math, name, f32(p, name + ".x", shape), scale);
    };
    add_program(all, "gemm of " + type, [&](Program& p) {
      const Quantized a = scaled(p, "a", {5, 16}, 64), b = scaled(p, "b", {7, 16}, 0.3);
      (void)gemm(p, {.transpose_b = true, .scaled = true}, f32_math, "y", a.values, b.values,
                 {.scale_a = a.inverse, .scale_b = b.inverse});
    });
    const auto stored = [&](Program& p) {
      (void)scaled(p, "usual", {64, 65}, 64);
      (void)scaled(p, "saturated", {64, 65}, 65536);
      (void)scaled(p, "subnormal", {64, 65}, 1.0 / 4096);
    };
    add_program(all, "quantize to " + type, stored, true);
    const auto unsaturated = [&](Program& p) {
      const ValueId scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(64)));
      (void)quantize(p, {to, false}, f32_math, "q", f32(p, "x", {64, 65}), scale);
    };
    add_program(all, "quantize to " + type + ", unsaturated", unsaturated, true);
    const auto scales = [&](Program& p) {
      const ValueId largest = amax(p, f32_math, "amax", f32(p, "x", {64, 65}));
      for (const int margin : {0, 3})
        (void)scale_from_amax(p, {to, margin}, f32_math, "scale" + std::to_string(margin), largest);
    };
    add_program(all, "scale_from_amax for " + type, scales, true);
  }
  for (const DType scales : {DType::u8, DType::f8_e4m3}) {
    const bool mx = scales == DType::u8;
    add_program(all, std::string("gemm of ") + (mx ? "mxfp8" : "nvfp4"), [&](Program& p) {
      const auto operand = [&](const std::string& name, std::int64_t rows) {
        const DType type = mx ? DType::f8_e4m3 : DType::f4_e2m1;
        const Fill fill = mx ? Fill::integers(120, 134) : Fill::normal(2.0);
        return std::pair(source(p, name, type, {rows, 96}),
                         p.add(tensor(name + ".blocks", scales, {rows, mx ? 3 : 6}, Role::scalar, fill)));
      };
      const auto [a, of_a] = operand("a", 5);
      const auto [b, of_b] = operand("b", 7);
      GemmOperands operands{.blocks_a = of_a, .blocks_b = of_b};
      if (mx) operands.bias = f32(p, "bias", {7});
      if (!mx) operands.scale_a = f32(p, "scale_a", {1});
      if (!mx) operands.scale_b = f32(p, "scale_b", {1});
      (void)gemm(p, {.transpose_b = true, .alpha = -0.5, .bias = mx, .scaled = !mx, .blocks = true}, f32_math, "y", a,
                 b, operands);
    });
  }
  for (const BlockFormat format :
       {BlockFormat::mxfp8_e4m3, BlockFormat::mxfp8_e5m2, BlockFormat::mxfp4, BlockFormat::nvfp4}) {
    const auto blocks = [format](Program& p) {
      std::optional<ValueId> scale;
      if (format == BlockFormat::nvfp4)
        scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(8)));
      (void)quantize_blocks(p, {format}, f32_math, "usual", f32(p, "x", {8, 96}), scale);
      (void)quantize_blocks(p, {format, true}, f32_math, "covering", f32(p, "z", {8, 96}), scale);
    };
    add_program(all, "quantize_blocks to " + std::string(name(format)), blocks, true);
  }
}

namespace {

/// Parts of one packed tensor, as in transformers.
void add_attention(OraclePrograms& all, const std::string& name, const Attention& attributes, std::int64_t b,
                   std::int64_t s, std::int64_t hq, std::int64_t hkv, std::int64_t d) {
  add_differentiated(all, name, [&](Program& p) -> OracleForward {
    const std::array heads{hq, hkv, hkv};
    const std::array names{"q", "k", "v"};
    const std::int64_t width = (hq + 2 * hkv) * d;
    const ValueId qkv = f32(p, "qkv", {b * s, width});
    std::vector<ValueId> parts;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      TensorSpec spec = tensor(names[i], DType::f32, {b, s, heads[i], d}, Role::activation);
      spec.layout.strides = {s * width, width, d, 1};
      parts.push_back(p.part(qkv, spec, first));
      first += heads[i] * d;
    }
    return {{attention_forward(p, attributes, f32_math, "o", parts[0], parts[1], parts[2]).o}, {qkv}};
  });
}

void add_conv(OraclePrograms& all, const Conv2d& attributes, const Shape& x_shape, const Shape& filter_shape) {
  const std::string text = describe(attributes);
  add_differentiated(all, "conv2d " + filter_shape.to_string() + " of " + x_shape.to_string() + " " + text,
                     [&](Program& p) -> OracleForward {
                       const ValueId x = f32(p, "x", x_shape), filter = f32(p, "filter", filter_shape);
                       return {{conv2d_forward(p, attributes, f32_math, "y", x, filter)}, {x, filter}};
                     });
}

void add_pool(OraclePrograms& all, const Pool& attributes, const Shape& x_shape) {
  const std::string text = x_shape.to_string() + " " + describe(attributes);
  add_differentiated(all, "max_pool " + text, [&](Program& p) -> OracleForward {
    const ValueId x = f32(p, "x", x_shape);
    return {{max_pool_forward(p, attributes, f32_math, "y", x).y}, {x}};
  });
  add_differentiated(all, "average_pool " + text, [&](Program& p) -> OracleForward {
    const ValueId x = f32(p, "x", x_shape);
    return {{average_pool_forward(p, attributes, f32_math, "y", x)}, {x}};
  });
}

}  // namespace

void add_image_programs(OraclePrograms& all) {
  add_differentiated(all, "global average pool", [](Program& p) -> OracleForward {
    const ValueId x = f32(p, "x", {2, 7, 5, 3});
    return {{global_average_pool_forward(p, f32_math, "y", x)}, {x}};
  });
  add_program(all, "max_pool of equal elements", [](Program& p) {
    const ValueId x = p.add(tensor("x", DType::f32, {2, 6, 7, 3}, Role::input, Fill::integers(-1, 1)));
    (void)max_pool_forward(p, {.window_h = 3, .window_w = 3, .stride_h = 2, .pad_h = 1, .pad_w = 1}, f32_math, "y", x);
  });
}

namespace {

/// Pseudo-random numbers in a range, the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(hash_at(seed_, count_++) % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t seed_, count_ = 0;
};

}  // namespace

void add_random_programs(OraclePrograms& all) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Dice dice(seed);
    const std::string number = "random " + std::to_string(seed) + " ";
    {
      const Gemm g{.transpose_a = dice(0, 1) == 1,
                   .transpose_b = dice(0, 1) == 1,
                   .alpha = static_cast<double>(dice(-8, 8)) / 4.0,
                   .bias = dice(0, 1) == 1,
                   .epilogue = dice(0, 1) == 1 ? Gemm::Epilogue::gelu : Gemm::Epilogue::none,
                   .gelu_form = dice(0, 1) == 1 ? GeluForm::erf : GeluForm::tanh};
      add_gemm(all, number + describe(g), g, dice(0, 3), {.m = dice(1, 12), .n = dice(1, 12), .k = dice(1, 40)});
    }
    {
      const std::int64_t kv = dice(1, 3), b = dice(1, 2), s = dice(1, 12), d = dice(1, 12), shared = dice(1, 3);
      const Attention attributes{dice(0, 1) == 1, static_cast<double>(dice(-8, 8)) / 8.0};
      add_attention(all, "attention, " + number + describe(attributes), attributes, b, s, kv * shared, kv, d);
    }
    const auto extent = [&](std::int64_t window, std::int64_t pad) {
      return std::max<std::int64_t>({window - 2 * pad, pad, 1}) + dice(0, 7);
    };
    {
      Conv2d c{dice(1, 3), dice(1, 3), dice(0, 3), dice(0, 3), dice(1, 3), dice(1, 3), dice(1, 3)};
      const std::int64_t r = dice(1, 4), s = dice(1, 4), n = dice(1, 2), in = dice(1, 3), out = dice(1, 3);
      const std::int64_t h = extent(c.dilation_h * (r - 1) + 1, c.pad_h),
                         w = extent(c.dilation_w * (s - 1) + 1, c.pad_w);
      add_conv(all, c, {n, h, w, c.groups * in}, {c.groups * out, r, s, in});
      all.back().name += ", " + number;
    }
    Pool pool{dice(1, 4), dice(1, 4), dice(1, 4), dice(1, 4)};
    pool.pad_h = dice(0, pool.window_h - 1), pool.pad_w = dice(0, pool.window_w - 1);
    pool.counts_padding = dice(0, 1) == 1;
    add_pool(all, pool, {dice(1, 2), extent(pool.window_h, pool.pad_h), extent(pool.window_w, pool.pad_w), dice(1, 3)});
    all.back().name += ", " + number;
  }
}

}  // namespace gpubench::testing
