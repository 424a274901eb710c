#include "reference/cuda/cudnn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/core/error.h"

namespace gpubench::cuda {

// Descriptors refer to those that they were made from, so a plan keeps all of them.
struct CudnnPlan::State {
  std::shared_ptr<const CudnnGraph> graph;
  std::shared_ptr<const CudnnDescriptor> operations;
  CudnnEngine engine;
  CudnnDescriptor plan;
  std::size_t engine_workspace = 0;
  cudnnHandle_t handle = nullptr;  // null for a described chip
};

struct CudnnLaunch::State {
  std::shared_ptr<const CudnnPlan::State> plan;
  std::vector<float> constants;  // cuDNN reads by-value tensors from host memory at each run
  CudnnDescriptor pack;
};

namespace {

constexpr std::array<std::pair<cudnnBackendHeurMode_t, const char*>, 3> modes{
    {{CUDNN_HEUR_MODE_A, "A"}, {CUDNN_HEUR_MODE_B, "B"}, {CUDNN_HEUR_MODE_FALLBACK, "fallback"}}};

// A search for plans, and the reasons if it finds none.
class Finder {
 public:
  Finder(const Cudnn& cudnn, std::shared_ptr<const CudnnGraph> graph, const CudnnSearch& search)
      : cudnn_(cudnn), graph_(std::move(graph)), search_(search) {}

  std::vector<CudnnPlan> find() {
    auto operations = std::make_shared<CudnnDescriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnn_.aim_graph(*operations);
    operations->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, graph_->operations());
    operations->finalize("building a graph");
    operations_ = std::move(operations);
    for (const auto& [mode, name] : modes) {
      const bool enough = plans_.size() >= search_.most || (search_.first_mode_only && !plans_.empty());
      if (!enough) ask(mode, name);
    }
    if (plans_.empty()) {
      const std::string text = fmt::format("cudnn {} has no plan: {}", cudnn_version(), reasons());
      if (failed_) throw BackendError(text);
      throw Unsupported(text);
    }
    return std::move(plans_);
  }

 private:
  void ask(cudnnBackendHeurMode_t mode, const char* mode_name) {
    CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *operations_);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    cudnn_.aim_heuristics(heuristics);
    if (const cudnnStatus_t status = heuristics.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
      leave_out(fmt::format("heuristics {}", mode_name), status);
      return;
    }
    std::vector<CudnnDescriptor> configs =
        heuristics.get_all(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (configs.empty()) ++left_out_[fmt::format("heuristics {}: no engine", mode_name)];
    for (CudnnDescriptor& config : configs) {
      if (plans_.size() == search_.most) return;
      CudnnEngine engine(std::move(config));
      if (seen_.insert(engine.name()).second) consider(std::move(engine));
    }
  }

  void consider(CudnnEngine engine) {
    if (!search_.engine.empty() && engine.name() != search_.engine) {
      ++left_out_["engines not requested"];
      return;
    }
    if (const std::string objection = engine.objection(search_.numerics); !objection.empty()) {
      ++left_out_["engines that don't keep the promised arithmetic: " + objection];
      return;
    }
    if (search_.alive) search_.alive();
    std::optional<CudnnDescriptor> restored = restore(engine);
    CudnnDescriptor plan = restored ? std::move(*restored) : CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (!restored) {
      cudnn_.aim_plan(plan);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config());
      cudnn_.count_built();
      if (const cudnnStatus_t status = plan.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        leave_out("engines that cannot be finalized", status);
        return;
      }
      keep(engine, plan);
    }
    const auto bytes = static_cast<std::size_t>(plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    const std::size_t needed = graph_->scratch_bytes() + bytes;
    if (needed > search_.workspace_limit) {
      ++left_out_[fmt::format("engines that need {} bytes of workspace (limit {})", needed, search_.workspace_limit)];
      return;
    }
    plans_.emplace_back(
        std::make_shared<CudnnPlan::State>(CudnnPlan::State{graph_, operations_, std::move(engine), std::move(plan),
                                                            bytes, cudnn_.described() ? nullptr : cudnn_.handle()}));
  }

  [[nodiscard]] std::string stored_under(const CudnnEngine& engine) const {
    return cudnn_.properties() + search_.key + "; " + engine.name();
  }

  // A plan that another thread built; empty if there is none or cuDNN rejects its text, so that the caller builds it.
  [[nodiscard]] std::optional<CudnnDescriptor> restore(const CudnnEngine& engine) const {
    if (cudnn_.store() == nullptr || search_.key.empty()) return std::nullopt;
    try {
      const std::optional<std::string> text = cudnn_.store()->find(stored_under(engine));
      if (!text) return std::nullopt;
      CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      cudnn_.aim_plan(plan);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, std::string_view(*text));
      plan.finalize("restoring a plan");
      cudnn_.count_restored();
      return plan;
    } catch (const std::runtime_error&) {
      cudnn_.store()->refuse();
      return std::nullopt;
    }
  }

  void keep(const CudnnEngine& engine, const CudnnDescriptor& plan) const {
    if (cudnn_.store() == nullptr || search_.key.empty()) return;
    try {
      cudnn_.store()->keep(stored_under(engine), plan.get_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION));
    } catch (const std::runtime_error&) {
      // Engines without such text are built by each thread.
    }
  }

  void leave_out(const std::string& what, cudnnStatus_t status) {
    failed_ = failed_ || CUDNN_STATUS_CATEGORY(status) != CUDNN_STATUS_NOT_SUPPORTED;
    ++left_out_[fmt::format("{}: {}", what, cudnn_error_text(status))];
  }

  std::string reasons() const {
    std::string text;
    for (const auto& [reason, times] : left_out_) {
      text +=
          fmt::format("{}{}{}", text.empty() ? "" : "; ", reason, times > 1 ? fmt::format(" ({} times)", times) : "");
    }
    return text;
  }

  const Cudnn& cudnn_;
  std::shared_ptr<const CudnnGraph> graph_;
  const CudnnSearch& search_;
  std::shared_ptr<const CudnnDescriptor> operations_;
  std::set<std::string> seen_;
  std::vector<CudnnPlan> plans_;
  std::map<std::string, int> left_out_;  // reason -> count
  bool failed_ = false;                  // for a reason other than lack of support
};

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

void CudnnLaunch::operator()(cudaStream_t stream) const {
  cudnnHandle_t handle = state_->plan->handle;
  if (handle == nullptr) throw BackendError("cudnn: running a plan failed: plans for a described chip cannot run");
  cudaStream_t current = nullptr;
  check(cudnnGetStream(handle, &current), "reading the stream");
  if (current != stream) check(cudnnSetStream(handle, stream), "setting the stream");
  check(cudnnBackendExecute(handle, state_->plan->plan.get(), state_->pack.get()),
        fmt::format("running {}", state_->plan->engine.name()));
}

std::string CudnnPlan::implementation() const { return "cudnn:" + state_->engine.name(); }

const CudnnEngine& CudnnPlan::engine() const { return state_->engine; }

std::size_t CudnnPlan::workspace_bytes() const { return state_->graph->scratch_bytes() + state_->engine_workspace; }

CudnnLaunch CudnnPlan::bind(std::span<std::byte* const> arguments, std::byte* workspace) const {
  const std::vector<CudnnGraph::Place>& places = state_->graph->places();
  auto launch = std::make_shared<CudnnLaunch::State>(
      CudnnLaunch::State{state_, {}, CudnnDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)});
  launch->constants.reserve(places.size());
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  std::byte* scratch = workspace;
  for (std::size_t i = 0; i < places.size(); ++i) {
    void* address = nullptr;
    switch (places[i].storage) {
      case GraphStorage::internal: continue;
      case GraphStorage::argument:
        address = arguments[places[i].argument];
        if (reinterpret_cast<std::uintptr_t>(address) % CudnnGraph::argument_alignment != 0) {
          throw BackendError(fmt::format("cudnn: binding tensor {} failed: address {} is not a multiple of {}",
                                         places[i].argument, address, CudnnGraph::argument_alignment));
        }
        break;
      case GraphStorage::scratch:
        address = scratch;
        scratch += CudnnGraph::padded(places[i].bytes);
        break;
      case GraphStorage::constant: address = &launch->constants.emplace_back(places[i].constant); break;
    }
    ids.push_back(CudnnGraph::unique_id(i));
    addresses.push_back(address);
  }
  launch->pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  launch->pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
  launch->pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, static_cast<void*>(scratch));
  launch->pack.finalize("binding tensors to a plan");
  return CudnnLaunch(std::move(launch));
}

std::vector<CudnnPlan> cudnn_plans(const Cudnn& cudnn, std::shared_ptr<const CudnnGraph> graph,
                                   const CudnnSearch& search) {
  return Finder(cudnn, std::move(graph), search).find();
}

}  // namespace gpubench::cuda
