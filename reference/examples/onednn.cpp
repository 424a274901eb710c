// oneDNN as an own implementation: gemm and conv2d_forward in f32 and bf16. plan() makes a primitive; run() only sets
// addresses and executes. Operands that need another layout are reordered in run(), as a training step must do too.
#include <cstdio>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpubench/implementation.h"

namespace {

using dnnl::memory;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  static dnnl::stream one(engine());
  return one;
}

gpubench_status say(gpubench_status status, char* text, size_t size, const std::string& words) {
  std::snprintf(text, size, "%s", words.c_str());
  return status;
}

const gpubench_tensor* tensor(const gpubench_call& call, const char* operand) {
  for (size_t i = 0; i < call.input_count + call.output_count; ++i) {
    if (std::strcmp(call.tensors[i].operand, operand) == 0) return &call.tensors[i];
  }
  return nullptr;
}

const gpubench_attribute* attribute(const gpubench_call& call, const char* name) {
  for (size_t i = 0; i < call.attribute_count; ++i) {
    if (std::strcmp(call.attributes[i].name, name) == 0) return &call.attributes[i];
  }
  return nullptr;
}

bool is_set(const gpubench_call& call, const char* name) { return attribute(call, name)->whole != 0; }
memory::dim number(const gpubench_call& call, const char* name) { return attribute(call, name)->whole; }

memory::data_type type_of(const gpubench_tensor& t) {
  return std::strcmp(t.type, "bf16") == 0 ? memory::data_type::bf16 : memory::data_type::f32;
}

// The tensor's memory, with its axes in the order `axes`.
memory::desc described(const gpubench_tensor& t, const std::vector<int>& axes) {
  memory::dims shape, strides;
  for (const int axis : axes) {
    shape.push_back(t.dl.shape[axis]);
    strides.push_back(t.dl.strides[axis]);
  }
  return {shape, type_of(t), strides};
}

// The axes of a matrix or a batch of matrices; the last two are swapped for a transposed read.
std::vector<int> matrix_axes(const gpubench_tensor& t, bool transposed) {
  const int last = t.dl.ndim - 1;
  std::vector<int> axes;
  for (int axis = 0; axis < last - 1; ++axis) axes.push_back(axis);
  axes.push_back(transposed ? last : last - 1);
  axes.push_back(transposed ? last - 1 : last);
  return axes;
}

memory::desc any_layout(const memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return {desc.get_dims(), desc.get_data_type(), memory::format_tag::any};
#else
  return {desc.dims(), desc.data_type(), memory::format_tag::any};
#endif
}

// A primitive and its reorders.
class Work {
 public:
  // Maps `operand` of the primitive to this tensor, stored as `plain`; the primitive needs `wanted`.
  void input(int operand, const gpubench_tensor& t, const memory::desc& plain, const memory::desc& wanted) {
    const memory user = place(t, plain);
    arguments_[operand] = user;
    if (plain == wanted) return;
    const memory own(wanted, engine());
    before_.push_back({dnnl::reorder(user, own), {{DNNL_ARG_FROM, user}, {DNNL_ARG_TO, own}}});
    arguments_[operand] = own;
  }
  void output(int operand, const gpubench_tensor& t, const memory::desc& plain, const memory::desc& wanted) {
    const memory user = place(t, plain);
    arguments_[operand] = user;
    if (plain == wanted) return;
    const memory own(wanted, engine());
    after_.push_back({dnnl::reorder(own, user), {{DNNL_ARG_FROM, own}, {DNNL_ARG_TO, user}}});
    arguments_[operand] = own;
  }
  void primitive(dnnl::primitive made) { primitive_ = std::move(made); }

  void run(const gpubench_call& call) {
    for (auto& [operand, user] : placed_) user.set_data_handle(tensor(call, operand.c_str())->dl.data);
    for (auto& [reorder, arguments] : before_) reorder.execute(stream(), arguments);
    primitive_.execute(stream(), arguments_);
    for (auto& [reorder, arguments] : after_) reorder.execute(stream(), arguments);
    stream().wait();
  }

 private:
  struct Reorder {
    dnnl::reorder primitive;
    std::unordered_map<int, memory> arguments;
  };
  memory place(const gpubench_tensor& t, const memory::desc& plain) {
    placed_.emplace_back(t.operand, memory(plain, engine(), DNNL_MEMORY_NONE));
    return placed_.back().second;
  }

  std::vector<std::pair<std::string, memory>> placed_;
  std::vector<Reorder> before_, after_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), arguments...};
#else
  return {typename Primitive::desc(arguments...), engine()};
#endif
}

void plan_gemm(const gpubench_call& call, Work& work) {
  const gpubench_tensor& a = *tensor(call, "a");
  const gpubench_tensor& b = *tensor(call, "b");
  const gpubench_tensor& c = *tensor(call, "c");
  const memory::desc a_desc = described(a, matrix_axes(a, is_set(call, "transpose_a")));
  const memory::desc b_desc = described(b, matrix_axes(b, is_set(call, "transpose_b")));
  const memory::desc c_desc = described(c, matrix_axes(c, false));
  const auto made = describe<dnnl::matmul>(a_desc, b_desc, c_desc);
  work.input(DNNL_ARG_SRC, a, a_desc, a_desc);
  work.input(DNNL_ARG_WEIGHTS, b, b_desc, b_desc);
  work.output(DNNL_ARG_DST, c, c_desc, c_desc);
  work.primitive(dnnl::matmul(made));
}

void plan_conv(const gpubench_call& call, Work& work) {
  const gpubench_tensor& x = *tensor(call, "x");
  const gpubench_tensor& filter = *tensor(call, "filter");
  const gpubench_tensor& y = *tensor(call, "y");
  const std::vector<int> channels_second{0, 3, 1, 2};  // NHWC in oneDNN's axis order
  const memory::desc x_desc = described(x, channels_second), y_desc = described(y, channels_second);
  const memory::desc filter_desc = described(filter, channels_second);
  const memory::dims strides{number(call, "stride_h"), number(call, "stride_w")};
  const memory::dims padding{number(call, "pad_h"), number(call, "pad_w")};
  const memory::dims dilation{number(call, "dilation_h") - 1, number(call, "dilation_w") - 1};  // gaps between taps
  const auto made =
      describe<dnnl::convolution_forward>(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                          x_desc, any_layout(filter_desc), y_desc, strides, dilation, padding, padding);
  work.input(DNNL_ARG_SRC, x, x_desc, made.src_desc());
  work.input(DNNL_ARG_WEIGHTS, filter, filter_desc, made.weights_desc());
  work.output(DNNL_ARG_DST, y, y_desc, made.dst_desc());
  work.primitive(dnnl::convolution_forward(made));
}

std::unique_ptr<Work> planned(const gpubench_call& call) {
  auto work = std::make_unique<Work>();
  std::strcmp(call.op, "gemm") == 0 ? plan_gemm(call, *work) : plan_conv(call, *work);
  return work;
}

gpubench_status offers(const gpubench_call* call, char* text, size_t size) {
  const bool gemm = std::strcmp(call->op, "gemm") == 0;
  if (!gemm && std::strcmp(call->op, "conv2d_forward") != 0)
    return say(GPUBENCH_DECLINED, text, size, "this example has gemm and conv2d_forward");
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    const std::string type = call->tensors[i].type;
    if (type != "f32" && type != "bf16") return say(GPUBENCH_DECLINED, text, size, "no " + type);
    if (call->tensors[i].dl.device.device_type != 1) return say(GPUBENCH_DECLINED, text, size, "CPU only");
  }
  if (gemm && (call->input_count != 2 || call->output_count != 1 || attribute(*call, "alpha")->real != 1.0))
    return say(GPUBENCH_DECLINED, text, size, "products of a and b alone: no bias, epilogue, alpha, beta or scales");
  if (!gemm && number(*call, "groups") != 1) return say(GPUBENCH_DECLINED, text, size, "one group of channels only");
  try {  // support depends on the CPU: oneDNN 2 has no bf16 below AVX-512
    (void)planned(*call);
    return GPUBENCH_OK;
  } catch (const dnnl::error& e) {
    return say(e.status == dnnl_unimplemented ? GPUBENCH_DECLINED : GPUBENCH_FAILED, text, size, e.message);
  }
}

gpubench_status plan(const gpubench_call* call, gpubench_plan* plan, char* text, size_t size) {
  try {
    plan->state = planned(*call).release();
    return GPUBENCH_OK;
  } catch (const dnnl::error& e) {
    return say(GPUBENCH_FAILED, text, size, e.message);
  }
}

gpubench_status run(void* state, const gpubench_call* call, void*, void*, char* text, size_t size) {
  try {
    static_cast<Work*>(state)->run(*call);
    return GPUBENCH_OK;
  } catch (const dnnl::error& e) {
    return say(GPUBENCH_FAILED, text, size, e.message);
  }
}

void destroy(void* state) { delete static_cast<Work*>(state); }

}  // namespace

extern "C" const gpubench_implementation* gpubench_entry(uint32_t, char*, size_t) {
  static const dnnl::version_t* const version = reinterpret_cast<const dnnl::version_t*>(dnnl::version());
  static const std::string text = "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) +
                                  "." + std::to_string(version->patch);
  static const gpubench_implementation table{
      GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), text.c_str(), offers, plan, run, destroy};
  return &table;
}
