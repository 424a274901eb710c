#include "reference/cuda/cudnn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace gpubench::cuda {
namespace {

// In the order of cuDNN's enumerators.
constexpr std::array<std::string_view, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> note_names{
    {"tensor_core", "down_convert_inputs", "reduced_precision_reduction", "fft", "nondeterministic", "winograd",
     "winograd_tile_4x4", "winograd_tile_6x6", "winograd_tile_13x13", "strict_nan_prop"}};
constexpr std::array<std::string_view, 44> knob_names{{"split_k",
                                                       "swizzle",
                                                       "tile_size",
                                                       "use_tex",
                                                       "edge",
                                                       "kblock",
                                                       "ldga",
                                                       "ldgb",
                                                       "chunk_k",
                                                       "split_h",
                                                       "wino_tile",
                                                       "multiply",
                                                       "split_k_buf",
                                                       "tilek",
                                                       "stages",
                                                       "reduction_mode",
                                                       "cta_split_k_mode",
                                                       "split_k_slc",
                                                       "idx_mode",
                                                       "sliced",
                                                       "split_rs",
                                                       "singlebuffer",
                                                       "ldgc",
                                                       "specfilt",
                                                       "kernel_cfg",
                                                       "workspace",
                                                       "tile_cga",
                                                       "tile_cga_m",
                                                       "tile_cga_n",
                                                       "block_size",
                                                       "occupancy",
                                                       "array_size_per_thread",
                                                       "num_c_per_block",
                                                       "split_cols",
                                                       "tile_rows",
                                                       "tile_cols",
                                                       "load_size",
                                                       "cta_count",
                                                       "stream_k",
                                                       "split_p_slc",
                                                       "tile_m",
                                                       "tile_n",
                                                       "warp_spec_cfg",
                                                       "swap_ab"}};

bool contains(const std::vector<cudnnBackendNumericalNote_t>& notes, cudnnBackendNumericalNote_t note) {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

}  // namespace

std::string_view name(cudnnBackendNumericalNote_t note) {
  const auto index = static_cast<std::size_t>(note);
  return index < note_names.size() ? note_names.at(index) : "unknown";
}

std::string name(cudnnBackendKnobType_t knob) {
  const auto index = static_cast<std::size_t>(knob);
  return index < knob_names.size() ? std::string(knob_names.at(index)) : fmt::format("knob{}", index);
}

CudnnNumerics CudnnNumerics::of(const Math& math, DType inputs, bool deterministic) {
  const bool exact_f32 = inputs == DType::f32 && math.inputs != Math::Inputs::tf32;
  return {.tensor_cores = !exact_f32, .deterministic = deterministic, .narrow_partial_sums = math.split_k_in_output};
}

CudnnEngine::CudnnEngine(CudnnDescriptor config) : config_(std::move(config)) {
  const std::vector<CudnnDescriptor> engine =
      config_.get_all(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  name_ = fmt::format("eng={}", engine.at(0).get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  notes_ = engine.at(0).get_all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  for (const CudnnDescriptor& choice : config_.get_all(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                       CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    name_ += fmt::format(",{}={}", cuda::name(choice.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)),
                         choice.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
}

std::string CudnnEngine::objection(const CudnnNumerics& numerics) const {
  if (!numerics.tensor_cores && contains(notes_, CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) {
    return "tensor cores round f32 inputs to TF32";
  }
  if (numerics.deterministic && contains(notes_, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "not deterministic";
  if (contains(notes_, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "inputs rounded to a narrower type";
  if (!numerics.narrow_partial_sums && contains(notes_, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) {
    return "partial sums in a narrower type";
  }
  if (contains(notes_, CUDNN_NUMERICAL_NOTE_FFT)) return "Fourier transform";
  if (contains(notes_, CUDNN_NUMERICAL_NOTE_WINOGRAD)) return "Winograd transform";
  return "";
}

}  // namespace gpubench::cuda
