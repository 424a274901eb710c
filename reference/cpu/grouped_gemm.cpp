// Grouped products by oneDNN, whose primitives have fixed shapes, while group sizes are known only at run time. Hence a
// primitive per power of two; a group takes one per bit of its size. A weight gradient sums over rows: later products
// add to the result in f32.
#include "reference/ops/grouped_gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

/// Products of 1, 2, 4, ... rows, with addresses given at each run.
class Products {
 public:
  /// `request(rows)` for up to `most` rows.
  template <class Request>
  Products(const OneDnn& onednn, std::int64_t most, const Request& request) {
    for (std::int64_t rows = 1; rows <= most; rows *= 2) works_.push_back(matmul_work(onednn, request(rows)));
  }
  [[nodiscard]] std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    for (const OneDnnWork& work : works_) bytes = std::max(bytes, work.workspace_bytes());
    return bytes;
  }
  [[nodiscard]] std::string implementation() const { return works_.back().implementation(); }
  [[nodiscard]] std::vector<OneDnnLaunch> bind(std::byte* workspace) const {
    std::vector<OneDnnLaunch> launches;
    constexpr std::array<std::byte*, 3> nowhere{};
    for (const OneDnnWork& work : works_) launches.push_back(work.bind(nowhere, workspace));
    return launches;
  }

 private:
  std::vector<OneDnnWork> works_;
};

/// Calls run(power of two, first row) for the pieces of `size` rows from `first` on, largest first.
template <class Run>
void for_each_piece(std::int64_t first, std::int64_t size, std::size_t powers, const Run& run) {
  for (std::size_t power = powers; power-- > 0;) {
    const std::int64_t rows = std::int64_t{1} << power;
    for (; size >= rows; size -= rows, first += rows) run(power, first);
  }
}

struct Bytes {
  std::byte* data = nullptr;
  std::size_t row_bytes = 0;
  [[nodiscard]] std::byte* row(std::int64_t row) const { return data + static_cast<std::size_t>(row) * row_bytes; }
  void clear(std::int64_t first, std::int64_t rows) const {
    std::memset(row(first), 0, static_cast<std::size_t>(rows) * row_bytes);
  }
};

Bytes bytes_of(const Tensor& tensor) {
  const Shape& shape = tensor.spec.shape;
  return {tensor.data, static_cast<std::size_t>(tensor.spec.bytes() / shape[0])};
}

struct GroupedWork {
  std::int64_t rows = 0, groups = 0;
  const std::int32_t* sizes = nullptr;
  Bytes a, b, c;

  /// Calls run(group, first row, size). Invalid sizes are clipped to the available rows. Returns the end of the last
  /// group.
  template <class Run>
  std::int64_t for_each_group(const Run& run) const {
    std::int64_t first = 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t size = std::clamp<std::int64_t>(sizes[g], 0, rows - first);
      run(g, first, size);
      first += size;
    }
    return first;
  }
};

struct GroupedForward : GroupedWork {
  std::vector<OneDnnLaunch> products;

  void operator()() const {
    const std::int64_t end = for_each_group([this](std::int64_t g, std::int64_t first, std::int64_t size) {
      for_each_piece(first, size, products.size(), [&](std::size_t power, std::int64_t row) {
        products[power].run_on(std::array{a.row(row), b.row(g), c.row(row)});
      });
    });
    c.clear(end, rows - end);
  }
};

struct GroupedBackwardWeight : GroupedWork {
  int threads = 1;
  std::int64_t elements = 0;  // per group
  float* sums = nullptr;      // of one group; null if c is f32
  std::vector<OneDnnLaunch> products, sums_of_products;

  void operator()() const {
    (void)for_each_group([this](std::int64_t g, std::int64_t begin, std::int64_t size) {
      if (size == 0) return c.clear(g, 1);
      std::byte* to = sums != nullptr ? reinterpret_cast<std::byte*>(sums) : c.row(g);
      for_each_piece(begin, size, products.size(), [&](std::size_t power, std::int64_t row) {
        (row == begin ? products : sums_of_products)[power].run_on(std::array{a.row(row), b.row(row), to});
      });
      if (sums == nullptr) return;
      auto* narrow = reinterpret_cast<bf16*>(c.row(g));
      parallel_chunks(threads, elements, element_grain, [&](std::int64_t from, std::int64_t past) {
        narrow_run(sums + from, past - from, narrow + from);
      });
    });
  }
};

void expect_grouped(const OpCall& call, std::span<const TensorSpec> tensors) {
  expect_f32_sums(call);
  for (const std::size_t i : {0, 1, 3}) expect_f32_or_bf16(call, tensors[i]);
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
}

template <class Work>
Work grouped(std::span<const TensorSpec> tensors) {
  Work work;
  work.rows = tensors[0].shape[0];
  work.groups = tensors[2].shape[0];
  return work;
}

template <class Work>
Work bound_to(Work work, std::span<const Tensor> bound) {
  work.a = bytes_of(bound[0]);
  work.b = bytes_of(bound[1]);
  work.sizes = elements_of<const std::int32_t>(bound[2]);
  work.c = bytes_of(bound[3]);
  return work;
}

// Row-major. Each group takes a product per bit of its size.
Plan plan_grouped_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  expect_grouped(call, tensors);
  const TensorSpec &a = tensors[0], &b = tensors[1], &c = tensors[3];
  const std::int64_t k = a.shape[1], n = c.shape[1];
  const bool transpose_b = call.attributes.as<GroupedGemm>().transpose_b;
  const Products products(context.onednn, a.shape[0], [&](std::int64_t rows) {
    return MatmulRequest{.a = dense_matrix(a.dtype, rows, k),
                         .b = dense_matrix(b.dtype, k, n, transpose_b),
                         .c = dense_matrix(c.dtype, rows, n)};
  });
  const auto work = grouped<GroupedForward>(tensors);
  return plan_of(products.implementation(), products.workspace_bytes(),
                 [work, products](std::span<const Tensor> bound, Workspace workspace) {
                   GroupedForward result = bound_to(work, bound);
                   result.products = products.bind(workspace.data);
                   return result;
                 });
}

Plan plan_grouped_gemm_backward_weight(const OpCall& call, std::span<const TensorSpec> tensors,
                                       const CpuContext& context) {
  expect_grouped(call, tensors);
  const TensorSpec &a = tensors[0], &b = tensors[1], &c = tensors[3];
  const std::int64_t m = c.shape[1], n = c.shape[2];
  const auto request = [&](float beta) {
    return [&, beta](std::int64_t rows) {
      return MatmulRequest{.a = dense_matrix(a.dtype, m, rows, true),
                           .b = dense_matrix(b.dtype, rows, n),
                           .c = dense_matrix(DType::f32, m, n),
                           .beta = beta};
    };
  };
  const Products first(context.onednn, a.shape[0], request(0.0F)), others(context.onednn, a.shape[0], request(1.0F));
  auto work = grouped<GroupedBackwardWeight>(tensors);
  work.threads = context.threads;
  work.elements = m * n;
  const std::size_t sums_bytes =
      c.dtype == DType::f32 ? 0 : static_cast<std::size_t>((work.elements + 15) / 16 * 16) * sizeof(float);
  return plan_of(first.implementation(), sums_bytes + std::max(first.workspace_bytes(), others.workspace_bytes()),
                 [work, first, others, sums_bytes](std::span<const Tensor> bound, Workspace workspace) {
                   GroupedBackwardWeight result = bound_to(work, bound);
                   if (sums_bytes > 0) result.sums = reinterpret_cast<float*>(workspace.data);
                   result.products = first.bind(workspace.data + sums_bytes);
                   result.sums_of_products = others.bind(workspace.data + sums_bytes);
                   return result;
                 });
}

}  // namespace

Ops grouped_gemm_ops() {
  return {{grouped_gemm_kind, plan_grouped_gemm},
          {grouped_gemm_backward_weight_kind, plan_grouped_gemm_backward_weight}};
}

}  // namespace gpubench::cpu
