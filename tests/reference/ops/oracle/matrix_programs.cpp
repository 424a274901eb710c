// Products, attention, convolutions and pooling for the oracle.
#include <algorithm>
#include <array>
#include <string>

#include "harness/core/hash.h"
#include "reference/ops/attention.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/gemm.h"
#include "reference/ops/pool.h"
#include "reference/ops/quantize.h"
#include "reference/ops/rotary.h"
#include "tests/reference/ops/oracle/programs.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace {

ValueId f32(Program& p, const std::string& name, const Shape& shape) { return source(p, name, DType::f32, shape); }

void add_gemm(OraclePrograms& all, const std::string& name, const Gemm& g, std::int64_t batch = 0,
              const GemmExtents& extents = {.m = 5, .n = 7, .k = 9}) {
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
    if (g.beta != 0.0) operands.c_in = f32(p, "c_in", shape(false, m, n));
    forward.y = {gemm(p, g, f32_math, "c", a, b, operands).c};
    return forward;
  });
}

}  // namespace

void add_matrix_programs(OraclePrograms& all) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const std::string name = std::string(a ? "t" : "n") + (b ? "t" : "n");
      add_gemm(all, name, {.transpose_a = a, .transpose_b = b});
      add_gemm(all, name + " batched, alpha", {.transpose_a = a, .transpose_b = b, .alpha = -0.75}, 3);
      add_gemm(all, name + " gelu, bias",
               {.transpose_a = a, .transpose_b = b, .bias = true, .epilogue = Gemm::Epilogue::gelu});
      for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
        const Gemm gradient{.transpose_a = a,
                            .transpose_b = b,
                            .alpha = form == GeluForm::erf ? 0.5 : 1.0,
                            .epilogue = Gemm::Epilogue::gelu_gradient,
                            .gelu_form = form};
        const Shape left = a ? Shape{9, 5} : Shape{5, 9}, right = b ? Shape{7, 9} : Shape{9, 7};
        const std::string epilogue = name + (form == GeluForm::erf ? " gelu gradient, erf" : " gelu gradient");
        add_program(all, "gemm " + epilogue, [&](Program& p) {
          const ValueId x = f32(p, "a", left), y = f32(p, "b", right), pre = f32(p, "pre", {5, 7});
          (void)gemm(p, gradient, f32_math, "c", x, y, {.pre = pre});
          (void)gemm_gelu_bias_gradient(p, gradient, f32_math, "dz", x, y, pre);
        });
      }
      if (a) {
        add_program(all, "gemm_weight_bias_gradient of a, " + name, [&](Program& p) {
          (void)gemm_weight_bias_gradient(p, {{.transpose_a = true, .transpose_b = b, .alpha = 2.5}}, f32_math, "dw",
                                          f32(p, "a", {9, 5}), f32(p, "b", b ? Shape{7, 9} : Shape{9, 7}));
        });
      }
      if (!b) {
        add_program(all, "gemm_weight_bias_gradient of b, " + name, [&](Program& p) {
          (void)gemm_weight_bias_gradient(p, {{.transpose_a = a}, GemmWeightBiasGradient::Operand::b}, f32_math, "dw",
                                          f32(p, "a", a ? Shape{9, 5} : Shape{5, 9}), f32(p, "b", {9, 7}));
        });
      }
    }
  }
  add_gemm(all, "gelu, erf", {.alpha = 0.5, .epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf});
  add_gemm(all, "batched, bias", {.transpose_b = true, .bias = true}, 2);
  add_program(all, "gemm beta", [](Program& p) {
    (void)gemm(p, {.alpha = 0.5, .beta = -1.5, .bias = true}, f32_math, "c", f32(p, "a", {5, 9}), f32(p, "b", {9, 7}),
               {.c_in = f32(p, "c_in", {5, 7}), .bias = f32(p, "bias", {7})});
  });
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
      const ValueId scale =
          p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(64)));  // nothing overflows
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

void add_attention(OraclePrograms& all, const Attention& attributes, std::int64_t b, std::int64_t s, std::int64_t hq,
                   std::int64_t hkv, std::int64_t d, bool packed) {
  const std::string name = std::string("attention ") + (attributes.causal ? "causal" : "full") + " b" +
                           std::to_string(b) + " s" + std::to_string(s) + " " + std::to_string(hq) + "/" +
                           std::to_string(hkv) + " heads of " + std::to_string(d) + (packed ? ", packed" : "");
  add_differentiated(all, name, [&](Program& p) -> OracleForward {
    const std::array heads{hq, hkv, hkv};
    const std::array names{"q", "k", "v"};
    const std::int64_t width = (hq + 2 * hkv) * d;
    const ValueId qkv = f32(p, "qkv", {b * s, width});
    OracleForward forward;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      TensorSpec spec = tensor(names[i], DType::f32, {b, s, heads[i], d}, Role::activation);
      if (packed) spec.layout.strides = {s * width, width, d, 1};
      forward.wanted.push_back(packed ? p.part(qkv, spec, first) : p.add(spec));
      first += heads[i] * d;
    }
    const std::vector<ValueId> parts = forward.wanted;
    if (packed) forward.wanted = {qkv};
    forward.y = {attention_forward(p, attributes, f32_math, "o", parts[0], parts[1], parts[2]).o};
    return forward;
  });
}

void add_attention_variant(OraclePrograms& all, const std::string& what, const Attention& attributes, std::int64_t s,
                           std::int64_t t, bool sinks = false, bool documents = false, std::int64_t d_v = 3) {
  add_differentiated(all, "attention, " + what, [&](Program& p) -> OracleForward {
    const ValueId q = f32(p, "q", {2, s, 4, 3}), k = f32(p, "k", {2, t, 2, 3}), v = f32(p, "v", {2, t, 2, d_v});
    OracleForward forward{{}, {q, k, v}};
    AttentionOptions options;
    if (sinks) forward.wanted.push_back(*(options.sinks = f32(p, "sinks", {4})));
    if (documents) {
      options.documents = p.add(tensor("documents", DType::i32, {2, 4}, Role::input, Fill::boundaries(s)));
    }
    forward.y = {attention_forward(p, attributes, f32_math, "o", q, k, v, options).o};
    return forward;
  });
}

}  // namespace

void add_attention_programs(OraclePrograms& all) {
  for (const bool causal : {false, true}) {
    add_attention(all, {causal, 0.5}, 2, 5, 2, 2, 4, false);
    add_attention(all, {causal, 0.37}, 1, 7, 6, 2, 3, true);  // grouped-query
    add_attention(all, {causal, 1.0}, 2, 6, 4, 1, 5, true);   // multi-query
    add_attention(all, {causal, 0.125}, 1, 1, 3, 3, 64, true);
    add_attention(all, {causal, -0.25}, 1, 33, 2, 1, 8, false);
    add_attention(all, {causal, 4.0}, 2, 9, 1, 1, 6, false);  // mostly the key of the largest score
  }
  add_attention_variant(all, "window", {.scale = 0.5, .window = 3}, 7, 7);
  add_attention_variant(all, "fewer queries", {.scale = 0.5}, 4, 7);
  add_attention_variant(all, "fewer queries, window", {.scale = 0.5, .window = 2}, 4, 7);
  add_attention_variant(all, "full, fewer keys", {.causal = false, .scale = 0.5}, 7, 4);
  add_attention_variant(all, "softcap", {.scale = 2.0, .softcap = 1.5}, 5, 5);
  add_attention_variant(all, "sinks", {.scale = 0.5}, 5, 5, true);
  for (const bool causal : {false, true}) {
    add_attention_variant(all, causal ? "documents" : "full documents", {causal, 0.5}, 12, 12, false, true);
  }
  add_attention_variant(all, "narrower values", {.scale = 0.5}, 5, 7, false, false, 2);
  add_attention_variant(all, "wider values", {.causal = false, .scale = 0.5}, 5, 7, true, false, 5);
  add_attention_variant(all, "all of them", {.scale = 2.0, .window = 3, .softcap = 1.5}, 12, 12, true, true);
  for (const Rotary::Pairing pairing : {Rotary::Pairing::half, Rotary::Pairing::interleaved}) {
    for (const bool inverse : {false, true}) {
      const std::string what = std::string("rotary ") + (pairing == Rotary::Pairing::half ? "half" : "interleaved") +
                               (inverse ? ", inverse" : "");
      add_differentiated(all, what, [&](Program& p) -> OracleForward {
        const ValueId x = f32(p, "x", {2, 5, 3, 6});
        const RotaryTables tables{f32(p, "cos", {5, 3}), f32(p, "sin", {5, 3})};
        return {{rotary(p, {pairing, inverse}, f32_math, "y", x, tables)}, {x}};
      });
      add_differentiated(all, what + " of a part of each head", [&](Program& p) -> OracleForward {
        const ValueId whole = f32(p, "whole", {1, 3, 2, 8});
        TensorSpec spec = tensor("x", DType::f32, {1, 3, 2, 4}, Role::activation);
        spec.layout.strides = {48, 16, 8, 1};
        const RotaryTables tables{f32(p, "cos", {3, 2}), f32(p, "sin", {3, 2})};
        const ValueId x = p.part(whole, spec, 2);
        return {{rotary(p, {pairing, inverse}, f32_math, "y", x, tables)}, {x}};
      });
    }
  }
}

namespace {

void add_conv(OraclePrograms& all, const Conv2d& attributes, const Shape& x_shape, const Shape& filter_shape) {
  const std::string text = describe(attributes);
  add_differentiated(all, "conv2d " + filter_shape.to_string() + " of " + x_shape.to_string() + " " + text,
                     [&](Program& p) -> OracleForward {
                       const ValueId x = f32(p, "x", x_shape), filter = f32(p, "filter", filter_shape);
                       return {{conv2d_forward(p, attributes, f32_math, "y", x, filter)}, {x, filter}};
                     });
}

void add_conv_norm(OraclePrograms& all, const Conv2dBatchNorm& attributes, const Shape& x_shape,
                   const Shape& filter_shape) {
  add_program(all, "conv2d_batch_norm " + describe(attributes), [&](Program& p) {
    const Conv2dExtents e = extents_of(attributes.conv, x_shape, filter_shape);
    const auto of_channels = [&](const char* name, Fill fill) {
      return p.add(tensor(name, DType::f32, {e.k}, Role::input, fill));
    };
    const BatchNormChannels channels{of_channels("gamma", {}), of_channels("beta", {}), of_channels("running_mean", {}),
                                     of_channels("running_var", Fill::positive(1))};
    const auto r = attributes.r ? std::optional(f32(p, "r", {e.n, e.p, e.q, e.k})) : std::nullopt;
    (void)conv2d_batch_norm_forward(p, attributes, f32_math, "y", f32(p, "x", x_shape), f32(p, "filter", filter_shape),
                                    channels, r);
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
  add_conv(all, {}, {2, 5, 7, 3}, {4, 1, 1, 3});
  add_conv(all, {.pad_h = 1, .pad_w = 1}, {2, 5, 7, 3}, {4, 3, 3, 3});
  add_conv(all, {.stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 2}, {1, 9, 11, 2}, {3, 3, 5, 2});
  add_conv(all, {.stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3}, {1, 12, 13, 3}, {5, 7, 7, 3});  // a stem
  add_conv_norm(all, {}, {2, 5, 7, 3}, {4, 1, 1, 3});
  add_conv_norm(all, {.relu = true}, {2, 5, 7, 3}, {4, 3, 3, 3});
  add_conv_norm(all,
                {.conv = {2, 3, 1, 2, 2, 2, 2}, .norm = {.epsilon = 0.125, .momentum = 0.25}, .relu = true, .r = true},
                {2, 9, 11, 4}, {6, 3, 3, 2});
  add_conv(all, {.stride_h = 2, .stride_w = 2}, {2, 6, 7, 4}, {6, 1, 1, 4});  // elements that no output reads
  add_conv(all, {.pad_h = 2, .pad_w = 3, .dilation_h = 2, .dilation_w = 3}, {1, 7, 8, 2}, {2, 3, 3, 2});
  add_conv(all, {.stride_h = 3, .stride_w = 2, .pad_h = 1, .dilation_h = 1, .dilation_w = 2, .groups = 2}, {2, 8, 9, 4},
           {6, 2, 3, 2});
  add_conv(all, {.pad_h = 1, .pad_w = 1, .groups = 4}, {1, 5, 5, 4}, {8, 3, 3, 1});  // depthwise
  add_conv(all, {.groups = 3}, {2, 3, 2, 6}, {3, 3, 2, 2});                          // one output each
  add_pool(all, {}, {1, 2, 3, 2});
  add_pool(all, {.window_h = 2, .window_w = 2, .stride_h = 2, .stride_w = 2}, {2, 7, 6, 3});
  add_pool(all, {.window_h = 3, .window_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}, {2, 7, 6, 3});
  add_pool(all, {.window_h = 3, .window_w = 2, .pad_h = 2, .pad_w = 1, .counts_padding = true}, {1, 4, 5, 2});
  add_pool(all, {.window_h = 2, .window_w = 1, .stride_h = 3, .stride_w = 2}, {2, 9, 5, 2});  // gaps
  add_pool(all, {.window_h = 5, .window_w = 4, .stride_w = 3, .pad_h = 4, .pad_w = 2}, {1, 5, 9, 1});
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

/// Numbers between two, the same on every machine.
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

// Combinations that nobody thought of.
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
      add_attention(all, {dice(0, 1) == 1, static_cast<double>(dice(-8, 8)) / 8.0}, b, s, kv * shared, kv, d, true);
      all.back().name += ", " + number;
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
