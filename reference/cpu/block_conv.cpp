#include "reference/cpu/own_products.h"

#include <hwy/targets.h>

#include <algorithm>
#include <array>

#include "reference/cpu/block_matmul.h"
#include "reference/cpu/parallel.h"
#include "reference/ops/conv2d.h"

namespace gpubench::cpu {
namespace {

using Pass = ConvolutionRequest::Pass;

// Shorter result rows use too little of a tile of 6 or 8 rows.
constexpr std::int64_t smallest_width = 14;

struct Image {
  std::int64_t h = 0, w = 0, c = 0;
  explicit Image(const Shape& shape) : h(shape[1]), w(shape[2]), c(shape[3]) {}
  [[nodiscard]] std::int64_t row() const { return w * c; }
};

/// y[., oy, ox, .] is the sum over dy of (s c numbers of row oy stride + dy of x, from column ox stride on) times a
/// matrix [s c, k]: a filter row covers adjacent numbers of an image. So a row of y is r products of overlapping rows
/// of one matrix.
/// The gradient of x is the convolution of dy with the filter rotated by 180 degrees.
struct BlockConv {
  static constexpr std::int64_t max_rows = 16;  ///< per filter

  int threads = 1;
  bool turned = false;
  Image x, y;
  std::int64_t images = 0, r = 0, s = 0;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  const float *source = nullptr, *filter = nullptr;
  float *destination = nullptr, *packed = nullptr, *padded_rows = nullptr;

  /// Columns of x that a row of y reads, including padding.
  [[nodiscard]] std::int64_t read_columns() const { return (y.w - 1) * stride_w + s; }
  [[nodiscard]] bool reads_in_place() const { return pad_w == 0 && read_columns() <= x.w; }

  std::size_t place(std::byte* workspace) {
    Arena arena(workspace);
    packed = arena.take<float>(r * s * x.c * y.c);
    padded_rows = reads_in_place() ? nullptr : arena.take<float>(threads * r * read_columns() * x.c);
    return arena.used();
  }

  void operator()() const {
    const std::int64_t panels = y.c / block_grain, depth = s * x.c;
    parallel_chunks(threads, r * panels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        pack_panel(i / panels, i % panels * block_grain, packed + i * depth * block_grain);
    });
    parallel_parts(threads, images * y.h, 1, [this](std::int64_t part, const Chunk& rows) {
      run_rows(rows, reads_in_place() ? nullptr : padded_rows + part * r * read_columns() * x.c);
    });
  }

  /// Row `dy` of the filter for 32 channels of y: [s c][32].
  void pack_panel(std::int64_t dy, std::int64_t channel, float* panel) const {
    const std::int64_t depth = s * x.c;
    if (!turned) {  // [k][r][s][c] in memory
      pack_transposed(Rows<const float>{filter + channel * r * depth + dy * depth, r * depth}, depth, block_grain,
                      panel);
      return;
    }
    for (std::int64_t dx = 0; dx < s; ++dx) {  // [c][r][s][k] in memory, with the result's names
      const float* from = filter + ((r - 1 - dy) * s + s - 1 - dx) * y.c + channel;
      pack(Rows<const float>{from, r * s * y.c}, x.c, block_grain, panel + dx * x.c * block_grain);
    }
  }

  /// `rows`: room for r padded rows of x; null if x is read in place.
  void run_rows(const Chunk& chunk, float* rows) const {
    std::array<std::int64_t, max_rows> held;
    held.fill(-1);
    for (std::int64_t i = chunk.begin; i < chunk.end; ++i) {
      const std::int64_t image = i / y.h, first = i % y.h * stride_h - pad_h;
      const Rows<float> sums{destination + i * y.row(), y.c};
      bool accumulate = false;
      for (std::int64_t dy = 0; dy < r; ++dy) {
        if (first + dy < 0 || first + dy >= x.h) continue;
        const std::int64_t at = image * x.h + first + dy;
        const float* row = source + at * x.row();
        if (rows != nullptr) {
          float* copy = rows + at % r * read_columns() * x.c;
          if (std::int64_t& holds = held[static_cast<std::size_t>(at % r)]; holds != at) {
            pad(row, copy);
            holds = at;
          }
          row = copy;
        }
        multiply({y.w, y.c, s * x.c, s * x.c}, Rows<const float>{row, stride_w * x.c}, packed + dy * s * x.c * y.c,
                 sums, accumulate);
        accumulate = true;
      }
      if (!accumulate) std::fill_n(sums.data, y.row(), 0.0F);
    }
  }

  void pad(const float* row, float* copy) const {
    const std::int64_t left = pad_w * x.c, all = read_columns() * x.c, inside = std::min(x.row(), all - left);
    std::fill_n(copy, left, 0.0F);
    std::copy_n(row, inside, copy + left);
    std::fill(copy + left + inside, copy + all, 0.0F);
  }
};

}  // namespace

std::optional<Plan> plan_block_conv(const OpCall& call, Pass pass, std::span<const TensorSpec* const> tensors,
                                    int threads) {
  if (pass == Pass::backward_filter || (hwy::SupportedTargets() & HWY_AVX3) != 0) return std::nullopt;
  const Conv2d& attributes = call.attributes.as<Conv2d>();
  const bool turned = pass == Pass::backward_data;
  const TensorSpec &from = *tensors[turned ? 2 : 0], &to = *tensors[turned ? 0 : 2];
  const std::int64_t r = tensors[1]->shape[1], s = tensors[1]->shape[2];
  const bool is_plain = std::ranges::all_of(tensors, [](const TensorSpec* tensor) {
    return tensor->dtype == DType::f32 && tensor->layout.is_row_major(tensor->shape);
  });
  if (!is_plain || attributes.groups != 1 || attributes.dilation_h != 1 || attributes.dilation_w != 1 || r * s == 1 ||
      r > BlockConv::max_rows || to.shape[3] % block_grain != 0 || to.shape[2] < smallest_width)
    return std::nullopt;
  if (turned ? attributes.stride_h != 1 || attributes.stride_w != 1 || attributes.pad_h >= r || attributes.pad_w >= s
             : s * from.shape[3] % 4 != 0)  // pack_transposed() reads 4 at a time
    return std::nullopt;
  BlockConv work{.threads = threads,
                 .turned = turned,
                 .x = Image(from.shape),
                 .y = Image(to.shape),
                 .images = from.shape[0],
                 .r = r,
                 .s = s,
                 .stride_h = attributes.stride_h,
                 .stride_w = attributes.stride_w,
                 .pad_h = turned ? r - 1 - attributes.pad_h : attributes.pad_h,
                 .pad_w = turned ? s - 1 - attributes.pad_w : attributes.pad_w};
  return plan_of(own_implementation(), work.place(nullptr),
                 [work, call, turned](std::span<const Tensor> bound, Workspace workspace) {
                   const Named<Tensor> at(call, bound);
                   BlockConv placed = work;
                   placed.source = elements_of<const float>(at[turned ? "dy" : "x"]);
                   placed.filter = elements_of<const float>(at["filter"]);
                   placed.destination = elements_of<float>(at[turned ? "dx" : "y"]);
                   (void)placed.place(workspace.data);
                   return placed;
                 });
}

}  // namespace gpubench::cpu
