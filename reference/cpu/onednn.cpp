#include "reference/cpu/onednn.h"

#include <dnnl_debug.h>
#include <fmt/core.h>
#include <dnnl.hpp>

#include <algorithm>
#include <utility>

#include "harness/core/error.h"
#include "reference/cpu/usable_isa.h"

namespace gpubench::cpu {

struct OneDnn::State {
  dnnl::engine engine;
  dnnl::stream stream;
};

namespace {

using dnnl::memory;

// Converts an error while planning: Unsupported for lack of support, else BackendError.
[[noreturn]] void rethrow(const dnnl::error& error, const char* what) {
  const std::string text = fmt::format("oneDNN {}: {} ({})", what, error.message, dnnl_status2str(error.status));
  if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments) throw Unsupported(text);
  throw BackendError(text);
}

memory::data_type type_of(DType type) {
  switch (type) {
    case DType::f32: return memory::data_type::f32;
    case DType::f16: return memory::data_type::f16;
    case DType::bf16: return memory::data_type::bf16;
    case DType::i32: return memory::data_type::s32;
    case DType::u8: return memory::data_type::u8;
    case DType::f64:
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f4_e2m1: break;
  }
  throw Unsupported(
      fmt::format("oneDNN: type {} is not supported on the CPU; expected f32, bf16, f16, i32 or u8", name(type)));
}

memory::desc in_given_layout(const MemoryShape& shape) { return {shape.extents, type_of(shape.dtype), shape.strides}; }
memory::desc in_any_layout(const MemoryShape& shape) {
  return {shape.extents, type_of(shape.dtype), memory::format_tag::any};
}

// Primitive descriptors: version 2 makes them from an operation descriptor, version 3 directly.
#if DNNL_VERSION_MAJOR >= 3
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                            const Arguments&... arguments) {
  return {engine, arguments..., attributes};
}
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                                     const dnnl::convolution_forward::primitive_desc& forward,
                                                     const Arguments&... arguments) {
  return {engine, arguments..., forward, attributes};
}
void append_scale(dnnl::post_ops& operations, float factor) {
  operations.append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0.0F);
}
#else
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                            const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), attributes, engine};
}
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                                     const dnnl::convolution_forward::primitive_desc& forward,
                                                     const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), attributes, engine, forward};
}
void append_scale(dnnl::post_ops& operations, float factor) {
  operations.append_eltwise(1.0F, dnnl::algorithm::eltwise_linear, factor, 0.0F);
}
#endif

dnnl::primitive_attr with_user_scratchpad(const dnnl::post_ops& operations = {}) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(operations);
  return attributes;
}

// An argument's place: an operand of the request, or an offset in the workspace.
struct Place {
  int operand = -1;  ///< -1: in the workspace
  std::size_t offset = 0;
};

struct Argument {
  int id = 0;
  memory::desc desc;
  Place place;
};

// Scratchpads start at a fixed offset in a page. oneDNN 2.6's AMX convolution of ResNet's stem (bf16, 7x7, 3 channels,
// stride 2) takes 380 us with its scratchpad at offset 1024, up to 445 at others, on two cores, and 693 to 727 on one.
// The operands' offsets do not matter.
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t scratchpad_in_page = 1024;

std::byte* next_scratchpad(std::byte* from) {
  const auto beyond = reinterpret_cast<std::uintptr_t>(from) - scratchpad_in_page;
  return from + (page_bytes - beyond % page_bytes) % page_bytes;
}

struct Step {
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
};

}  // namespace

struct OneDnnWork::Recipe {
  const OneDnn::State& state;
  std::string main;      // impl_info_str of the computing primitive
  std::string repacked;  // names of repacked operands
  std::vector<Step> steps;
  std::size_t workspace_bytes = 0;
};

struct OneDnnLaunch::Steps {
  struct Bound {
    dnnl::primitive primitive;
    std::vector<memory> memories;  // owned for the arguments
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<int> operands;  // operand of each memory; -1: in the workspace
  };
  dnnl::stream stream;
  std::vector<Bound> steps;
};

namespace {

// Builds a recipe: the computing primitive, and reorders for operands that need another layout.
class RecipeBuilder {
 public:
  explicit RecipeBuilder(const OneDnn::State& state)
      : recipe_(std::make_shared<OneDnnWork::Recipe>(OneDnnWork::Recipe{state, {}, {}, {}, 0})) {}

  struct Operand {
    int id;  // DNNL_ARG_...
    const char* name;
    memory::desc given;
    memory::desc wanted;
    bool output = false;
    bool updated = false;  // an output whose old content is used
    float added = 0.0F;    // not 0: the result is computed in a buffer, plus this times the old content
  };

  template <class PrimitiveDesc, class Primitive>
  OneDnnWork finish(const PrimitiveDesc& desc, const Primitive& primitive, const std::vector<Operand>& operands) {
    recipe_->main = desc.impl_info_str();
    std::vector<Argument> arguments;
    struct Afterwards {
      Argument from, to;
      float added;
    };
    std::vector<Afterwards> afterwards;
    for (std::size_t index = 0; index < operands.size(); ++index) {
      const Operand& operand = operands[index];
      const Argument outside{operand.id, operand.given, Place{static_cast<int>(index), 0}};
      if (operand.given == operand.wanted && operand.added == 0.0F) {
        arguments.push_back(outside);
        continue;
      }
      const Argument inside{operand.id, operand.wanted, Place{-1, reserve(operand.wanted.get_size())}};
      recipe_->repacked += (recipe_->repacked.empty() ? "" : ",") + std::string(operand.name);
      if (!operand.output || operand.updated) add_reorder(outside, inside);
      if (operand.output) afterwards.push_back({inside, outside, operand.added});
      arguments.push_back(inside);
    }
    add(primitive, desc.scratchpad_desc(), std::move(arguments));
    for (const auto& [from, to, added] : afterwards) add_reorder(from, to, added);
    return finish();
  }

  OneDnnWork finish_reorder(const Argument& from, const Argument& to) {
    recipe_->main = add_reorder(from, to);
    return finish();
  }

 private:
  std::size_t reserve(std::size_t bytes) {
    return std::exchange(recipe_->workspace_bytes, recipe_->workspace_bytes + whole_lines(bytes));
  }

  std::string add_reorder(const Argument& from, const Argument& to, float added = 0.0F) {
    const dnnl::engine& engine = recipe_->state.engine;
    dnnl::post_ops operations;
    if (added != 0.0F) operations.append_sum(added);
    const dnnl::reorder::primitive_desc desc(engine, from.desc, engine, to.desc, with_user_scratchpad(operations));
    add(dnnl::reorder(desc), desc.scratchpad_desc(),
        {{DNNL_ARG_FROM, from.desc, from.place}, {DNNL_ARG_TO, to.desc, to.place}});
    return desc.impl_info_str();
  }

  void add(const dnnl::primitive& primitive, const memory::desc& scratchpad, std::vector<Argument> arguments) {
    if (scratchpad.get_size() > 0) {
      scratchpads_.push_back(recipe_->steps.size());
      scratchpad_bytes_ = std::max(scratchpad_bytes_, scratchpad.get_size());
      arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, {}});
    }
    recipe_->steps.push_back({primitive, std::move(arguments)});
  }

  // Steps do not overlap, so they share one scratchpad, the largest, behind everything else.
  OneDnnWork finish() {
    if (scratchpads_.empty()) return OneDnnWork(recipe_);
    const std::size_t offset = reserve(scratchpad_bytes_ + page_bytes);
    for (const std::size_t step : scratchpads_) recipe_->steps[step].arguments.back().place = {-1, offset};
    return OneDnnWork(recipe_);
  }

  std::shared_ptr<OneDnnWork::Recipe> recipe_;
  std::vector<std::size_t> scratchpads_;
  std::size_t scratchpad_bytes_ = 0;
};

// Operands whose layout the library may choose: none, the weights, all.
using Packing = std::array<bool, 3>;

// At most `most` packings with fast code; for f32, if there are none, the first that works.
template <class Make>
std::vector<OneDnnWork> fast_ways(const char* what, std::size_t most, bool is_f32, const Make& make) {
  constexpr std::array<Packing, 3> packings{{{false, false, false}, {false, true, false}, {true, true, true}}};
  if (!is_f32 && !onednn_multiplies_bf16())
    throw Unsupported(fmt::format("oneDNN {}: {} has no instructions for bf16", what, onednn_isa()));
  std::vector<OneDnnWork> fast;
  std::optional<OneDnnWork> slow;
  std::optional<dnnl::error> refused;
  for (const Packing& packing : packings) {
    if (fast.size() == most) break;
    try {
      OneDnnWork work = make(packing);
      const auto is_same = [&](const OneDnnWork& other) { return other.implementation() == work.implementation(); };
      if (work.is_reference_code()) {
        if (!slow) slow = std::move(work);
      } else if (std::none_of(fast.begin(), fast.end(), is_same)) {
        fast.push_back(std::move(work));
      }
    } catch (const dnnl::error& error) {
      if (!refused) refused = error;
    }
  }
  if (!fast.empty()) return fast;
  if (slow && is_f32) return {*slow};
  if (slow) throw Unsupported(fmt::format("oneDNN {}: only {} supports these types", what, slow->implementation()));
  rethrow(*refused, what);
}

bool are_f32(std::initializer_list<const MemoryShape*> operands) {
  return std::ranges::all_of(operands, [](const MemoryShape* operand) { return operand->dtype == DType::f32; });
}

memory::desc described(const MemoryShape& shape, bool repacked) {
  return repacked ? in_any_layout(shape) : in_given_layout(shape);
}

/// `apart`: computes the product in a buffer; a second step adds beta c.
OneDnnWork make_matmul(const OneDnn::State& state, const MatmulRequest& request, const Packing& repack, bool apart) {
  const memory::desc a = in_given_layout(request.a), b = in_given_layout(request.b), c = in_given_layout(request.c);
  // The bias is added after scaling; the primitive's bias is added before.
  const bool bias_inside = request.bias && request.alpha == 1.0F && !request.scaled;
  const std::size_t axes = request.c.extents.size();
  const memory::desc factor(memory::dims(axes, 1), memory::data_type::f32,
                            axes == 3 ? memory::format_tag::abc : memory::format_tag::ab);
  dnnl::post_ops operations;
  if (request.alpha != 1.0F) append_scale(operations, request.alpha);
  const int first_factor = operations.len();
  for (int factors = request.scaled ? 2 : 0; factors > 0; --factors)
    operations.append_binary(dnnl::algorithm::binary_mul, factor);
  if (request.beta != 0.0F && !apart) operations.append_sum(request.beta);
  memory::desc bias;
  if (request.bias) {
    const std::int64_t n = request.c.extents.back();
    bias = memory::desc(axes == 3 ? memory::dims{1, 1, n} : memory::dims{1, n}, type_of(*request.bias),
                        axes == 3 ? memory::format_tag::abc : memory::format_tag::ab);
    if (!bias_inside) operations.append_binary(dnnl::algorithm::binary_add, bias);
  }
  const dnnl::primitive_attr attributes = with_user_scratchpad(operations);
  const memory::desc a_any = described(request.a, repack[0]), b_any = described(request.b, repack[1]),
                     c_any = described(request.c, repack[2]);
  const auto desc = bias_inside ? describe<dnnl::matmul>(state.engine, attributes, a_any, b_any, bias, c_any)
                                : describe<dnnl::matmul>(state.engine, attributes, a_any, b_any, c_any);
  std::vector<RecipeBuilder::Operand> operands{
      {DNNL_ARG_SRC, "a", a, desc.src_desc()},
      {DNNL_ARG_WEIGHTS, "b", b, desc.weights_desc()},
      {DNNL_ARG_DST, "c", c, desc.dst_desc(), true, request.beta != 0.0F && !apart, apart ? request.beta : 0.0F}};
  const auto post_op = [](int index) { return DNNL_ARG_ATTR_MULTIPLE_POST_OP(index) | DNNL_ARG_SRC_1; };
  if (request.bias) {
    const int id = bias_inside ? DNNL_ARG_BIAS : post_op(operations.len() - 1);
    operands.push_back({id, "bias", bias, bias});
  }
  if (request.scaled) {
    operands.push_back({post_op(first_factor), "scale_a", factor, factor});
    operands.push_back({post_op(first_factor + 1), "scale_b", factor, factor});
  }
  return RecipeBuilder(state).finish(desc, dnnl::matmul(desc), operands);
}

// oneDNN 2.6's 1x1 filter gradient for AVX2 gathers strided pixels in vectors of 8 channels. With fewer channels it
// reads and writes outside its buffers: wrong sums in most launches of 2 threads, changed bytes before x on one, or a
// hang. No fixed version is known.
bool writes_outside_its_buffers(const std::string& implementation, const ConvolutionRequest& request) {
  constexpr std::int64_t vector = 8;
  const bool strided = request.stride[0] > 1 || request.stride[1] > 1;
  return implementation.starts_with("jit_1x1:avx2") && strided && request.source.extents[1] < vector;
}

OneDnnWork make_convolution(const OneDnn::State& state, const ConvolutionRequest& request, const Packing& repack) {
  using Pass = ConvolutionRequest::Pass;
  const memory::dims strides(request.stride.begin(), request.stride.end());
  const memory::dims padding(request.padding.begin(), request.padding.end());
  const memory::dims holes{request.dilation[0] - 1, request.dilation[1] - 1};
  // Winograd's error exceeds the bound of a convolution.
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const memory::desc x = described(request.source, repack[0]), w = described(request.filter, repack[1]),
                     y = described(request.destination, repack[2]);
  const memory::desc x_given = in_given_layout(request.source), w_given = in_given_layout(request.filter),
                     y_given = in_given_layout(request.destination);
  const dnnl::primitive_attr attributes = with_user_scratchpad();
  RecipeBuilder builder(state);
  if (request.pass == Pass::forward) {
    const auto desc = describe<dnnl::convolution_forward>(state.engine, attributes, dnnl::prop_kind::forward_training,
                                                          algorithm, x, w, y, strides, holes, padding, padding);
    return builder.finish(desc, dnnl::convolution_forward(desc),
                          {{DNNL_ARG_SRC, "source", x_given, desc.src_desc()},
                           {DNNL_ARG_WEIGHTS, "filter", w_given, desc.weights_desc()},
                           {DNNL_ARG_DST, "destination", y_given, desc.dst_desc(), true}});
  }
  // Backward passes need the descriptor of a forward pass with the same types, in any layout.
  const DType type = request.pass == Pass::backward_data ? request.filter.dtype : request.source.dtype;
  const auto any = [type](MemoryShape shape) {
    shape.dtype = type;
    return in_any_layout(shape);
  };
  const auto forward = describe<dnnl::convolution_forward>(
      state.engine, dnnl::primitive_attr(), dnnl::prop_kind::forward_training, algorithm, any(request.source),
      any(request.filter), any(request.destination), strides, holes, padding, padding);
  if (request.pass == Pass::backward_data) {
    const auto desc = describe_backward<dnnl::convolution_backward_data>(state.engine, attributes, forward, algorithm,
                                                                         x, w, y, strides, holes, padding, padding);
    return builder.finish(desc, dnnl::convolution_backward_data(desc),
                          {{DNNL_ARG_DIFF_SRC, "source", x_given, desc.diff_src_desc(), true},
                           {DNNL_ARG_WEIGHTS, "filter", w_given, desc.weights_desc()},
                           {DNNL_ARG_DIFF_DST, "destination", y_given, desc.diff_dst_desc()}});
  }
  auto desc = describe_backward<dnnl::convolution_backward_weights>(state.engine, attributes, forward, algorithm, x, w,
                                                                    y, strides, holes, padding, padding);
  while (writes_outside_its_buffers(desc.impl_info_str(), request)) {
    if (!desc.next_impl()) throw dnnl::error(dnnl_unimplemented, "only a 1x1 kernel that writes outside its buffers");
  }
  return builder.finish(desc, dnnl::convolution_backward_weights(desc),
                        {{DNNL_ARG_SRC, "source", x_given, desc.src_desc()},
                         {DNNL_ARG_DIFF_WEIGHTS, "filter", w_given, desc.diff_weights_desc(), true},
                         {DNNL_ARG_DIFF_DST, "destination", y_given, desc.diff_dst_desc()}});
}

}  // namespace

OneDnn::OneDnn(const std::string& highest) {
  if (!highest.empty()) limit_onednn(highest);
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    state_ = std::make_unique<State>(State{engine, dnnl::stream(engine)});
  } catch (const dnnl::error& error) {
    throw BackendError(fmt::format("oneDNN cannot create a CPU engine: {}", error.what()));
  }
}

OneDnn::~OneDnn() = default;

std::string OneDnn::excluded_kernels() const {
  if (!onednn_isa().starts_with("avx2")) return {};
  return "oneDNN's jit_1x1:avx2, for gradients of 1x1 filters with a stride and fewer than 8 channels: it writes "
         "outside its buffers";
}

std::string OneDnn::version() const {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{} ({})", version->major, version->minor, version->patch, version->hash);
}

void OneDnnLaunch::operator()() const {
  for (const Steps::Bound& step : steps_->steps) {
    const dnnl_status_t status = dnnl_primitive_execute(step.primitive.get(), steps_->stream.get(),
                                                        static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success) throw BackendError(fmt::format("oneDNN failed to run: {}", dnnl_status2str(status)));
  }
}

void OneDnnLaunch::run_on(std::span<std::byte* const> operands) const {
  for (const Steps::Bound& step : steps_->steps) {
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      if (step.operands[i] < 0) continue;
      const dnnl_status_t status =
          dnnl_memory_set_data_handle(step.memories[i].get(), operands[static_cast<std::size_t>(step.operands[i])]);
      if (status != dnnl_success) throw BackendError(fmt::format("oneDNN failed to run: {}", dnnl_status2str(status)));
    }
  }
  (*this)();
}

std::string OneDnnWork::implementation() const {
  const std::string repacked = recipe_->repacked.empty() ? "" : fmt::format("+repack({})", recipe_->repacked);
  return fmt::format("onednn:{}{}", recipe_->main, repacked);
}

bool OneDnnWork::is_reference_code() const {
  return recipe_->main.starts_with("ref") || recipe_->main.starts_with("simple");
}

std::size_t OneDnnWork::workspace_bytes() const { return recipe_->workspace_bytes; }

OneDnnLaunch OneDnnWork::bind(std::span<std::byte* const> operands, std::byte* workspace) const {
  auto bound = std::make_shared<OneDnnLaunch::Steps>();
  bound->stream = recipe_->state.stream;
  for (const Step& step : recipe_->steps) {
    OneDnnLaunch::Steps::Bound& into = bound->steps.emplace_back();
    into.primitive = step.primitive;
    for (const Argument& argument : step.arguments) {
      const int operand = argument.place.operand;
      std::byte* data = operand >= 0 ? operands[static_cast<std::size_t>(operand)] : workspace + argument.place.offset;
      if (argument.id == DNNL_ARG_SCRATCHPAD) data = next_scratchpad(data);
      into.memories.emplace_back(argument.desc, recipe_->state.engine, data);
      into.arguments.push_back({argument.id, into.memories.back().get()});
      into.operands.push_back(operand);
    }
  }
  return OneDnnLaunch(std::move(bound));
}

OneDnnWork matmul_work(const OneDnn& onednn, const MatmulRequest& request) {
  return matmul_ways(onednn, request, 1).front();
}

std::vector<OneDnnWork> matmul_ways(const OneDnn& onednn, const MatmulRequest& request, std::size_t most) {
  const auto ways = [&](bool apart) {
    return fast_ways("matmul", most, are_f32({&request.a, &request.b, &request.c}),
                     [&](const Packing& repack) { return make_matmul(onednn.state(), request, repack, apart); });
  };
  std::vector<OneDnnWork> in_one = ways(false);
  // With AVX2 the addend must precede any factor.
  if (request.beta == 0.0F || !in_one.front().is_reference_code()) return in_one;
  return ways(true);
}

OneDnnWork convolution_work(const OneDnn& onednn, const ConvolutionRequest& request) {
  return fast_ways("convolution", 1, are_f32({&request.source, &request.filter, &request.destination}),
                   [&](const Packing& repack) { return make_convolution(onednn.state(), request, repack); })
      .front();
}

OneDnnWork reorder_work(const OneDnn& onednn, const MemoryShape& from, const MemoryShape& to) {
  try {
    return RecipeBuilder(onednn.state())
        .finish_reorder({DNNL_ARG_FROM, in_given_layout(from), {0, 0}}, {DNNL_ARG_TO, in_given_layout(to), {1, 0}});
  } catch (const dnnl::error& error) {
    rethrow(error, "reorder");
  }
}

MemoryShape with_plain_strides(MemoryShape shape) {
  const std::size_t rank = shape.extents.size();
  std::int64_t outermost = 1;
  bool dense_axis = false;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (shape.extents[axis] <= 1) continue;
    outermost = std::max(outermost, shape.extents[axis] * shape.strides[axis]);
    dense_axis = dense_axis || shape.strides[axis] == 1;
  }
  for (std::size_t axis = rank; axis-- > 0;) {
    if (shape.extents[axis] > 1) continue;
    shape.strides[axis] = dense_axis ? outermost : 1;
    dense_axis = true;
  }
  return shape;
}

MemoryShape memory_shape(const OpCall& call, const TensorSpec& tensor, const std::vector<int>& order) {
  if (!tensor.layout.blocks.empty()) refuse_layout(call, tensor, "plain strides");
  MemoryShape shape;
  shape.dtype = tensor.dtype;
  for (const int axis : order) {
    shape.extents.push_back(tensor.shape[axis]);
    shape.strides.push_back(tensor.layout.strides[static_cast<std::size_t>(axis)]);
  }
  return with_plain_strides(std::move(shape));
}

}  // namespace gpubench::cpu
