#include "harness/core/call_view.h"

#include "harness/core/error.h"

namespace gpubench {

namespace {

/// Names of types are literals.
const char* type_name(DType type) { return gpubench::name(type).data(); }

struct ValueTeller {
  gpubench_attribute& to;
  const std::string& word;
  void operator()(bool set) const {
    to.type = GPUBENCH_BOOL;
    to.whole = set ? 1 : 0;
  }
  void operator()(std::int64_t number) const {
    to.type = GPUBENCH_WHOLE;
    to.whole = number;
  }
  void operator()(double number) const {
    to.type = GPUBENCH_REAL;
    to.real = number;
  }
  void operator()(std::string_view) const {
    to.type = GPUBENCH_WORD;
    to.word = word.c_str();
  }
  void operator()(const std::vector<std::int64_t>& numbers) const {
    to.type = GPUBENCH_LIST;
    to.list = numbers.data();
    to.count = numbers.size();
  }
};

}  // namespace

DLDataType dlpack_type(DType type) {
  constexpr std::uint16_t lanes = 1;
  const auto bits = static_cast<std::uint8_t>(bits_of(type));
  switch (type) {
    case DType::f64:
    case DType::f32:
    case DType::f16: return {2, bits, lanes};
    case DType::bf16: return {4, bits, lanes};
    case DType::f8_e4m3: return {10, bits, lanes};
    case DType::f8_e5m2: return {12, bits, lanes};
    case DType::f4_e2m1: return {17, bits, lanes};
    case DType::i32: return {0, bits, lanes};
    case DType::u8: break;
  }
  return {1, bits, lanes};
}

CallView::CallView(const OpCall& call, std::span<const TensorSpec> tensors, DLDevice device, bool deterministic)
    : attributes_(call.attributes.list()),
      operands_(operand_names(call.kind.inputs, call.attributes, call.inputs.size())),
      op_(call.kind.name),
      inputs_(name(call.math.inputs)) {
  const auto outputs = operand_names(call.kind.outputs, call.attributes, call.outputs.size());
  operands_.insert(operands_.end(), outputs.begin(), outputs.end());
  for (const Attribute& attribute : attributes_) {
    words_.emplace_back(attribute.name);
    const auto* word = std::get_if<std::string_view>(&attribute.value);
    words_.emplace_back(word == nullptr ? "" : *word);
  }
  for (std::size_t i = 0; i < attributes_.size(); ++i) {
    gpubench_attribute& to = c_attributes_.emplace_back();
    to.name = words_[2 * i].c_str();
    std::visit(ValueTeller{to, words_[2 * i + 1]}, attributes_[i].value);
  }
  extents_.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorSpec& spec = tensors[i];
    if (!spec.layout.blocks.empty())
      throw Unsupported("tensor '" + spec.name + "' has a blocked layout; expected strides");
    const int rank = spec.shape.rank();
    std::vector<std::int64_t>& extents =
        extents_.emplace_back(spec.shape.extents().begin(), spec.shape.extents().end());
    extents.insert(extents.end(), spec.layout.strides.begin(), spec.layout.strides.end());
    const DLTensor dl{nullptr, device, rank, dlpack_type(spec.dtype), extents.data(), extents.data() + rank, 0};
    c_tensors_.push_back({operands_.at(i).name.c_str(), operands_[i].item, type_name(spec.dtype), dl});
  }
  call_ = {op_.c_str(),
           type_name(call.math.accumulate),
           inputs_.c_str(),
           call.math.fast_accumulation ? 1 : 0,
           call.math.split_k_in_output ? 1 : 0,
           call.math.approximate_tanh ? 1 : 0,
           deterministic ? 1 : 0,
           c_attributes_.data(),
           c_attributes_.size(),
           c_tensors_.data(),
           call.inputs.size(),
           call.outputs.size()};
}

std::vector<gpubench_tensor> CallView::placed(std::span<const Tensor> bound) const {
  std::vector<gpubench_tensor> tensors = c_tensors_;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].dl.data = bound[i].data;
  return tensors;
}

}  // namespace gpubench
