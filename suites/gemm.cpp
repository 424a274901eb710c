// Suite gemm: the matrix products of training, with the shapes of real models.
//
// A linear layer with weight [n, k] on m tokens is three products of 2 m n k FLOP each: forward y = x w^T,
// backward_data dx = dy w, and backward_weight dw = dy^T x.
#include "reference/ops/gemm.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "suites/suites.h"

namespace gpubench::suites {
namespace {

std::vector<std::string> layer_recipes() { return {"f32", "tf32", "bf16", "f16", "f8_hybrid"}; }

std::vector<std::string> every_recipe() { return {"f64", "f32", "tf32", "bf16", "f16", "f8_hybrid", "f8_hybrid_fast"}; }

// bf16_approx_tanh: GELU with the approximate tanh of libraries' epilogues.
std::vector<std::string> gelu_recipes() {
  std::vector<std::string> recipes = training_recipes();
  recipes.emplace_back("bf16_approx_tanh");
  return recipes;
}

Point mnk(std::int64_t m, std::int64_t n, std::int64_t k, std::string label, Tier tier) {
  return {{{"m", m}, {"n", n}, {"k", k}}, std::move(label), tier};
}

// Weights of about 1/sqrt(k), so that sums of k products are about 1.
TensorSpec activation(const char* name, Shape shape, const Recipe& r) {
  return tensor(name, r.tensor, std::move(shape), Role::input, Fill::normal(1.0));
}
TensorSpec weight(const char* name, Shape shape, std::int64_t k, const Recipe& r) {
  return tensor(name, r.tensor, std::move(shape), Role::parameter,
                Fill::normal(1.0 / std::sqrt(static_cast<double>(k))));
}

TensorSpec gradient(const char* name, Shape shape, const Recipe& r) {
  return tensor(name, r.tensor, std::move(shape), Role::gradient, Fill::normal(1.0));
}

// Layers of GPT-2 124M and 1558M (openai/gpt-2; vocabulary padded to 50304 as in llm.c), BERT (arXiv 1810.04805),
// ViT-B/16 (arXiv 2010.11929), ResNet-50 (arXiv 1512.03385), Llama 2 7B (arXiv 2307.09288), Llama 3 8B, 70B and 405B
// (arXiv 2407.21783), GPT-3 6.7B and 175B (arXiv 2005.14165), an expert of Mixtral 8x7B (arXiv 2401.04088) and of
// DeepSeek-V3 (arXiv 2412.19437), and DeepBench.
Grid layer_grid(Direction direction) {
  Grid grid;
  grid.recipes = layer_recipes();
  grid.points = {
      mnk(256, 2304, 768, "gpt2-124m qkv", Tier::smoke),
      mnk(1024, 2304, 768, "gpt2-124m qkv", Tier::quick),
      mnk(1024, 768, 768, "gpt2-124m attention out", Tier::standard),
      mnk(1024, 3072, 768, "gpt2-124m mlp up", Tier::standard),
      mnk(1024, 768, 3072, "gpt2-124m mlp down", Tier::quick),
      mnk(256, 6144, 4096, "llama3-8b qkv", Tier::quick),
      mnk(128, 50304, 768, "gpt2-124m head", Tier::quick),
      mnk(8192, 2304, 768, "gpt2-124m qkv", Tier::standard),
      mnk(8192, 768, 768, "gpt2-124m attention out", Tier::standard),
      mnk(8192, 3072, 768, "gpt2-124m mlp up", Tier::standard),
      mnk(8192, 768, 3072, "gpt2-124m mlp down", Tier::standard),
      mnk(8192, 50304, 768, "gpt2-124m head", Tier::standard),
      mnk(8192, 6144, 4096, "llama3-8b qkv", Tier::standard),
      mnk(8192, 4096, 4096, "llama3-8b attention out", Tier::standard),
      mnk(8192, 28672, 4096, "llama3-8b gate+up", Tier::standard),
      mnk(8192, 4096, 14336, "llama3-8b down", Tier::standard),
      mnk(8192, 128256, 4096, "llama3-8b head", Tier::large),
      mnk(8192, 12288, 4096, "gpt3-6.7b qkv", Tier::large),
      mnk(8192, 16384, 4096, "gpt3-6.7b mlp up", Tier::large),
      mnk(8192, 4096, 16384, "gpt3-6.7b mlp down", Tier::large),
      mnk(8192, 10240, 8192, "llama3-70b qkv", Tier::large),
      mnk(8192, 8192, 8192, "llama3-70b attention out", Tier::large),
      mnk(8192, 57344, 8192, "llama3-70b gate+up", Tier::large),
      mnk(8192, 8192, 28672, "llama3-70b down", Tier::large),
      mnk(8192, 18432, 16384, "llama3-405b qkv", Tier::large),
      mnk(8192, 16384, 16384, "llama3-405b attention out", Tier::large),
      mnk(8192, 106496, 16384, "llama3-405b gate+up", Tier::large),
      mnk(8192, 16384, 53248, "llama3-405b down", Tier::large),
      mnk(4096, 2112, 7168, "deepseek-v3 q+kv down", Tier::large),
      mnk(4096, 24576, 1536, "deepseek-v3 q up", Tier::large),
      mnk(4096, 7168, 16384, "deepseek-v3 attention out", Tier::large),
      mnk(4096, 32768, 512, "deepseek-v3 kv up", Tier::large),
      mnk(4096, 36864, 7168, "deepseek-v3 dense gate+up", Tier::large),
      mnk(4096, 7168, 18432, "deepseek-v3 dense down", Tier::large),
      mnk(4096, 4096, 7168, "deepseek-v3 expert gate+up", Tier::large),
      mnk(4096, 7168, 2048, "deepseek-v3 expert down", Tier::large),
      mnk(4096, 256, 7168, "deepseek-v3 router", Tier::large),
      mnk(2048, 28672, 4096, "mixtral-8x7b expert gate+up", Tier::large),
      mnk(2048, 4096, 14336, "mixtral-8x7b expert down", Tier::large),
      mnk(8192, 12288, 4096, "llama2-7b qkv", Tier::large),
      mnk(8192, 22016, 4096, "llama2-7b gate+up", Tier::large),
      mnk(8192, 4096, 11008, "llama2-7b down", Tier::large),
      mnk(8192, 36864, 12288, "gpt3-175b qkv", Tier::large),
      mnk(8192, 49152, 12288, "gpt3-175b mlp up", Tier::large),
      mnk(8192, 12288, 49152, "gpt3-175b mlp down", Tier::large),
      mnk(4096, 4800, 1600, "gpt2-1558m qkv", Tier::large),
      mnk(4096, 6400, 1600, "gpt2-1558m mlp up", Tier::large),
      mnk(4096, 1600, 6400, "gpt2-1558m mlp down", Tier::large),
      mnk(4096, 3072, 1024, "bert-large qkv", Tier::large),
      mnk(4096, 4096, 1024, "bert-large mlp up", Tier::large),
      mnk(4096, 1024, 4096, "bert-large mlp down", Tier::large),
      mnk(4096, 30522, 768, "bert-base head", Tier::large),
      mnk(12608, 2304, 768, "vit-b16 qkv, 64 images", Tier::large),
      mnk(12608, 3072, 768, "vit-b16 mlp up, 64 images", Tier::large),
      mnk(256, 1000, 2048, "resnet50 classifier", Tier::standard),
  };
  for (Point& point : deepbench_products(direction)) grid.points.push_back(std::move(point));
  return grid;
}

// In longer sums the error bound of fast accumulation reaches the sum itself, so that a check proves nothing.
constexpr std::int64_t longest_fast_sum = 16384;

Grid square_grid() {
  const std::vector<std::string> but_fast{"f64", "f32", "tf32", "bf16", "f16", "f8_hybrid"};
  Grid grid;
  grid.recipes = every_recipe();
  grid.points = {
      mnk(512, 512, 512, "square", Tier::smoke),
      mnk(35, 127, 1760, "edge: odd extents", Tier::smoke),
      mnk(1, 1, 1, "edge: one element", Tier::smoke),
      mnk(1024, 1024, 1024, "square", Tier::quick),
      mnk(2048, 2048, 2048, "square", Tier::quick),
      mnk(128, 128, 65536, "edge: long sum", Tier::quick),
      mnk(8191, 17, 127, "edge: primes", Tier::quick),
      mnk(127, 7, 1, "edge: sums of one product", Tier::quick),
      mnk(4096, 4096, 4096, "square", Tier::standard),
      mnk(8192, 8192, 8192, "square", Tier::standard),
      mnk(16384, 16384, 16384, "square", Tier::large),
      mnk(512, 16, 500000, "deepbench, edge: very long sum", Tier::standard),
      mnk(5124, 9124, 2560, "deepbench", Tier::standard),
      mnk(35, 8457, 4096, "deepbench, edge: few rows", Tier::standard),
      mnk(4096, 7133, 4096, "deepbench, edge: odd width", Tier::standard),
  };
  for (Point& point : grid.points) {
    if (point.dims[2].second > longest_fast_sum) point.recipes = but_fast;
  }
  return grid;
}

// Each product quantizes its operands along k, so a layer's three directions are one workload of other extents.
Grid block_scaled_grid() {
  Grid grid;
  grid.recipes = {"mxfp8", "nvfp4"};
  grid.points = {
      {{{"m", 160}, {"n", 416}, {"k", 1760}}, "edge: unfilled tiles of scales", Tier::smoke, {"mxfp8"}},
      mnk(256, 2304, 768, "gpt2-124m qkv", Tier::quick),
      mnk(8192, 6144, 4096, "llama3-8b qkv", Tier::standard),
      mnk(8192, 4096, 4096, "llama3-8b attention out", Tier::standard),
      mnk(8192, 28672, 4096, "llama3-8b gate+up", Tier::standard),
      mnk(8192, 4096, 28672, "llama3-8b gate+up, gradient of its input", Tier::standard),
      mnk(28672, 4096, 8192, "llama3-8b gate+up, gradient of its weight", Tier::standard),
      mnk(8192, 4096, 14336, "llama3-8b down", Tier::standard),
      mnk(8192, 57344, 8192, "llama3-70b gate+up", Tier::large),
      mnk(8192, 8192, 28672, "llama3-70b down", Tier::large),
  };
  return grid;
}

double rows(const Case& c) { return static_cast<double>(c.dim("m")); }

WorkloadInfo product(std::string name, std::string description) {
  return {std::move(name), std::move(description), "m", PrimaryMetric::flop_per_s, "tokens", CacheMode::cold};
}

// An operand: a tensor of the recipe, or, if the recipe quantizes, an 8-bit copy and the inverse of its scale.
struct Factor {
  ValueId value;
  std::optional<ValueId> scale;
};

// The axis that the product sums over. Matrix units of sm_89 and sm_90 read 8-bit operands along that axis only, so
// training keeps transposed copies, and so does this suite.
enum class Sums { along_rows, down_columns };

// Keeps values normal and far below e4m3's largest, 448.
constexpr double eight_bit_scale = 16.0;

Factor factor(Program& p, const Recipe& r, TensorSpec spec, Sums sums) {
  if (!r.quantizes()) return {p.add(std::move(spec)), {}};
  const std::string name = spec.name;
  spec.dtype = spec.role == Role::gradient ? r.gradient_operand : r.operand;
  spec.fill.scale *= eight_bit_scale;
  if (sums == Sums::down_columns) spec.layout = Layout::ordered(spec.shape, std::array{1, 0});
  const ValueId value = p.add(std::move(spec));
  return {value, p.add(tensor(name + ".scale", DType::f32, {1}, Role::scalar, Fill::constant(1.0 / eight_bit_scale)))};
}

void product(Program& p, Gemm attributes, const Recipe& r, const char* label, const Factor& a, const Factor& b) {
  attributes.scaled = r.quantizes();
  gemm(p, attributes, r.math, label, a.value, b.value, {.scale_a = a.scale, .scale_b = b.scale});
}

Program linear_forward(const Case& c, const Recipe& r) {
  const auto m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const Factor x = factor(p, r, activation("x", {m, k}, r), Sums::along_rows);
  const Factor w = factor(p, r, weight("w", {n, k}, k, r), Sums::along_rows);
  product(p, {.transpose_b = true}, r, "y", x, w);
  return p;
}

Program linear_backward_data(const Case& c, const Recipe& r) {
  const auto m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const Factor dy = factor(p, r, gradient("dy", {m, n}, r), Sums::along_rows);
  const Factor w = factor(p, r, weight("w", {n, k}, n, r), Sums::down_columns);
  product(p, {}, r, "dx", dy, w);
  return p;
}

Program linear_backward_weight(const Case& c, const Recipe& r) {
  const auto m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const Factor dy = factor(p, r, gradient("dy", {m, n}, r), Sums::down_columns);
  const Factor x = factor(p, r, activation("x", {m, k}, r), Sums::down_columns);
  product(p, {.transpose_a = true}, r, "dw", dy, x);
  return p;
}

Program matmul(const Case& c, const Recipe& r) {
  const auto m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const Factor a = factor(p, r, activation("a", {m, k}, r), Sums::along_rows);
  const Factor b = factor(p, r, weight("b", {k, n}, k, r), Sums::down_columns);
  product(p, {}, r, "c", a, b);
  return p;
}

// An operand with scales per block, and per tensor if the recipe has one; values of about `size`.
struct BlockScaled {
  ValueId values, blocks;
  std::optional<ValueId> factor;
};
BlockScaled block_scaled(Program& p, const Recipe& r, const std::string& name, Role role, std::int64_t rows,
                         std::int64_t k, double size) {
  const bool mx = r.block == 32;
  const Shape blocks{rows, k / r.block};
  BlockScaled result;
  result.values = p.add(tensor(name, r.operand, {rows, k}, role, Fill::normal(mx ? 64.0 : 2.0)));
  if (mx) {
    const std::int64_t middle = 121 + std::lround(std::log2(size));  // E8M0: 64 * 2^(121 - 127) = 1
    const Fill powers = Fill::integers(middle - 2, middle + 2);
    result.blocks = p.add(tensor(name + ".blocks", DType::u8, blocks, Role::scalar, powers));
  } else {
    result.blocks = p.add(tensor(name + ".blocks", DType::f8_e4m3, blocks, Role::scalar, Fill::positive(8.0)));
    result.factor = p.add(tensor(name + ".scale", DType::f32, {1}, Role::scalar, Fill::constant(size / 16.0)));
  }
  return result;
}

Program block_scaled_matmul(const Case& c, const Recipe& r) {
  const auto m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const BlockScaled a = block_scaled(p, r, "a", Role::activation, m, k, 1.0);
  const BlockScaled b = block_scaled(p, r, "b", Role::parameter, n, k, 1.0 / std::sqrt(static_cast<double>(k)));
  gemm(p, {.transpose_b = true, .scaled = a.factor.has_value(), .blocks = true}, r.math, "c", a.values, b.values,
       {.scale_a = a.factor, .scale_b = b.factor, .blocks_a = a.blocks, .blocks_b = b.blocks});
  return p;
}

Program batched_matmul(const Case& c, const Recipe& r) {
  const auto batch = c.dim("b"), m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const ValueId q = p.add(activation("q", {batch, m, k}, r));
  const ValueId key = p.add(weight("key", {batch, n, k}, k, r));
  gemm(p, {.transpose_b = true}, r.math, "scores", q, key);
  return p;
}

Program linear_bias_gelu_forward(const Case& c, const Recipe& r) {
  const auto m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const ValueId x = p.add(activation("x", {m, k}, r));
  const ValueId w = p.add(weight("w", {n, k}, k, r));
  const ValueId bias = p.add(tensor("bias", r.tensor, {n}, Role::parameter, Fill::normal(0.125)));
  gemm(p, {.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu}, r.math, "y", x, w, {.bias = bias});
  return p;
}

Program linear_gelu_backward_data(const Case& c, const Recipe& r) {
  const auto m = c.dim("m"), n = c.dim("n"), k = c.dim("k");
  Program p;
  const ValueId dy = p.add(activation("dy", {m, n}, r));
  const ValueId w = p.add(weight("w", {n, k}, n, r));
  const ValueId pre = p.add(tensor("pre", r.tensor, {m, k}, Role::activation, Fill::pointwise()));
  gemm(p, {.epilogue = Gemm::Epilogue::gelu_gradient}, r.math, "dpre", dy, w, {.pre = pre});
  return p;
}

}  // namespace

Suite gemm() {
  Grid batched;
  batched.recipes = training_recipes();
  batched.points = {
      {{{"b", 12}, {"m", 256}, {"n", 256}, {"k", 64}}, "gpt2-124m scores, 256 tokens", Tier::smoke},
      {{{"b", 12}, {"m", 1024}, {"n", 1024}, {"k", 64}}, "gpt2-124m scores, 1024 tokens", Tier::quick},
      {{{"b", 128}, {"m", 4096}, {"n", 4096}, {"k", 128}}, "llama2-7b scores, 4 sequences", Tier::standard},
  };
  Grid up;
  up.recipes = gelu_recipes();
  up.points = {mnk(1024, 3072, 768, "gpt2-124m mlp up", Tier::quick),
               mnk(8192, 3072, 768, "gpt2-124m mlp up", Tier::standard)};
  Grid down;
  down.recipes = gelu_recipes();
  // The gradient of GELU's input, through the down projection: weight [n, k] = [768, 3072].
  down.points = {mnk(1024, 768, 3072, "gpt2-124m mlp down", Tier::quick),
                 mnk(8192, 768, 3072, "gpt2-124m mlp down", Tier::standard)};
  WorkloadInfo batched_info = product("batched_matmul", "scores[i] = q[i] key[i]^T for b pairs of matrices");
  batched_info.batch_axis = "b";
  batched_info.item = "matrices";
  return {"gemm",
          "matrix products of linear layers and attention, in all three directions",
          {
              declare({product("linear_forward", "y [m, n] = x [m, k] w [n, k]^T"), layer_grid(Direction::forward),
                       linear_forward, rows}),
              declare({product("linear_backward_data", "dx [m, k] = dy [m, n] w [n, k]"),
                       layer_grid(Direction::backward_data), linear_backward_data, rows}),
              declare({product("linear_backward_weight", "dw [n, k] = dy [m, n]^T x [m, k]"),
                       layer_grid(Direction::backward_weight), linear_backward_weight, rows}),
              declare({product("matmul", "c [m, n] = a [m, k] b [k, n]"), square_grid(), matmul, rows}),
              declare({product("block_scaled_matmul", "c [m, n] = a [m, k] b [n, k]^T, a scale for each block along k"),
                       block_scaled_grid(), block_scaled_matmul, rows}),
              declare({batched_info, batched, batched_matmul,
                       [](const Case& c) { return static_cast<double>(c.dim("b")); }}),
              declare({product("linear_bias_gelu_forward", "y = gelu(x w^T + bias), pre-activation saved"), up,
                       linear_bias_gelu_forward, rows}),
              declare({product("linear_gelu_backward_data", "dpre = (dy w) gelu'(pre)"), down,
                       linear_gelu_backward_data, rows}),
          }};
}

}  // namespace gpubench::suites
