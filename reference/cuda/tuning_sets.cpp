#include "reference/cuda/autotune.h"

#include <algorithm>

#include "harness/core/backend.h"
#include "reference/cuda/kernels/runtime.h"

namespace gpubench::cuda {
namespace {

constexpr double first_share_of_memory = 0.25;
constexpr std::int64_t max_sets = 1024;  // binding more would take longer than it saves

ScrambleType scramble_type(DType type) {
  switch (type) {
    case DType::f64: return ScrambleType::f64;
    case DType::f32: return ScrambleType::f32;
    case DType::f16: return ScrambleType::f16;
    case DType::bf16: return ScrambleType::bf16;
    case DType::f8_e4m3: return ScrambleType::f8_e4m3;
    case DType::f8_e5m2: return ScrambleType::f8_e5m2;
    case DType::f4_e2m1: return ScrambleType::f4_pairs;
    case DType::i32: return ScrambleType::i32;
    case DType::u8: return ScrambleType::u8;
  }
  return ScrambleType::u8;
}

std::int64_t sets_for(std::int64_t bytes, const DeviceTraits& device) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "querying free memory");
  const std::int64_t one = std::max<std::int64_t>(bytes, 1);
  const std::int64_t cache = 3 * device.l2_bytes;
  const std::int64_t wanted = std::min((cache + one - 1) / one + 1, max_sets);
  const auto fitting = static_cast<std::int64_t>(static_cast<double>(free_bytes) * first_share_of_memory) / one;
  return std::max<std::int64_t>(1, std::min(wanted, fitting));
}

}  // namespace

TuningSets::TuningSets(std::span<const TensorSpec> specs, const TuningData& data, std::size_t workspace_bytes,
                       const CudaContext& context)
    : context_(context), data_(data), workspace_(allocate(workspace_bytes)), workspace_bytes_(workspace_bytes) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += spec.bytes();
  const auto sets = static_cast<std::size_t>(sets_for(bytes, context.device));
  for (std::size_t set = 0; set < sets; ++set) {
    std::vector<Tensor> tensors;
    for (const TensorSpec& spec : specs) {
      memory_.push_back(allocate(static_cast<std::size_t>(spec.bytes())));
      tensors.push_back({spec, memory_.back().get()});
    }
    for (const auto& [output, input] : data_.aliases) {
      tensors[static_cast<std::size_t>(output)].data = tensors[static_cast<std::size_t>(input)].data;
    }
    sets_.push_back(std::move(tensors));
    fill(set);
  }
  check(cudaStreamSynchronize(context.stream), "filling scratch tensors");
}

void TuningSets::fill(std::size_t set) {
  const std::vector<Tensor>& tensors = sets_[set];
  // Backwards: an updated output shares its input's memory and must keep the input's numbers.
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const TensorSpec& spec = tensors[i].spec;
    const std::uint64_t seed = 1 + set * tensors.size() + i;
    launch_scramble(scramble_type(spec.dtype), tensors[i].data,
                    static_cast<std::size_t>(spec.bytes()) / std::max<std::size_t>(bits_of(spec.dtype) / 8, 1), seed,
                    i < data_.exponents.size() ? data_.exponents[i] : 0, context_.stream);
    check_launch("the scramble kernel");
  }
}

std::vector<Launch> TuningSets::bind(const CudaPlan& plan) const {
  std::vector<Launch> launches;
  for (const std::vector<Tensor>& tensors : sets_) {
    launches.push_back(plan.bind(tensors, {workspace_.get(), workspace_bytes_}));
  }
  return launches;
}

std::string TuningSets::objection(const OpCall& call, const Launch& launch) {
  const std::vector<Tensor>& tensors = sets_.front();
  const std::size_t inputs = call.inputs.size();
  const auto is_update = [&](std::size_t tensor) {
    return std::any_of(data_.aliases.begin(), data_.aliases.end(),
                       [&](const auto& alias) { return static_cast<std::size_t>(alias.first) == tensor; });
  };
  const auto bytes_of = [&](std::size_t tensor) { return static_cast<std::size_t>(tensors[tensor].spec.bytes()); };
  const auto read = [&](std::size_t tensor) {
    host_[tensor].resize(bytes_of(tensor));
    check(cudaMemcpyAsync(host_[tensor].data(), tensors[tensor].data, bytes_of(tensor), cudaMemcpyDefault,
                          context_.stream),
          "reading a candidate's tensors");
  };
  host_.resize(tensors.size());
  fill(0);  // overwrites results of earlier candidates
  for (std::size_t i = 0; i < inputs && !inputs_read_; ++i) read(i);
  for (std::size_t i = inputs; i < tensors.size(); ++i) {
    if (!is_update(i)) check(cudaMemsetAsync(tensors[i].data, 0xFF, bytes_of(i), context_.stream), "poisoning outputs");
  }
  static_cast<const CudaLaunch&>(*launch).enqueue(context_.stream);
  for (std::size_t i = inputs; i < tensors.size(); ++i) read(i);
  check(cudaStreamSynchronize(context_.stream), "waiting for a candidate's results");
  inputs_read_ = true;
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < tensors.size(); ++i) views.emplace_back(tensors[i].spec, host_[i].data());
  return context_.options.judge->objection(std::span(views).first(inputs), std::span(views).subspan(inputs));
}

}  // namespace gpubench::cuda
