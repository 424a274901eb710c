#include "harness/core/call_view.h"

#include "harness/core/error.h"

namespace gpubench {

template <>
inline constexpr auto enum_names<Math::Inputs> = std::to_array<std::string_view>({"exact", "tf32", "emulated"});

namespace {

/// Names of types are literals.
const char* type_name(DType type) { return gpubench::name(type).data(); }

struct ValueTeller {
  gpubench_attribute& to;
  const std::string& word;
  void operator()(bool set) const {
    to.type = gpubench_attribute::GPUBENCH_BOOL;
    to.whole = set ? 1 : 0;
  }
  void operator()(std::int64_t number) const {
    to.type = gpubench_attribute::GPUBENCH_WHOLE;
    to.whole = number;
  }
  void operator()(double number) const {
    to.type = gpubench_attribute::GPUBENCH_REAL;
    to.real = number;
  }
  void operator()(std::string_view) const {
    to.type = gpubench_attribute::GPUBENCH_WORD;
    to.word = word.c_str();
  }
  void operator()(const std::vector<std::int64_t>& numbers) const {
    to.type = gpubench_attribute::GPUBENCH_LIST;
    to.list = numbers.data();
    to.count = numbers.size();
  }
};

}  // namespace

CallView::CallView(const OpCall& call, std::span<const TensorSpec> tensors)
    : attributes_(call.attributes.list()),
      operands_(operand_names(call.kind.inputs, call.attributes, call.inputs.size())),
      specs_(tensors.begin(), tensors.end()),
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
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const TensorSpec& spec = specs_[i];
    if (!spec.layout.blocks.empty()) throw Unsupported("tensor '" + spec.name + "' lies in blocks; expected strides");
    c_tensors_.push_back({operands_.at(i).name.c_str(), operands_[i].item, type_name(spec.dtype), spec.shape.rank(),
                          spec.shape.extents().data(), spec.layout.strides.data(), nullptr});
  }
  call_ = {op_.c_str(),
           type_name(call.math.accumulate),
           inputs_.c_str(),
           call.math.fast_accumulation ? 1 : 0,
           call.math.split_k_in_output ? 1 : 0,
           call.math.approximate_tanh ? 1 : 0,
           c_attributes_.data(),
           c_attributes_.size(),
           c_tensors_.data(),
           call.inputs.size(),
           call.outputs.size()};
}

std::vector<gpubench_tensor> CallView::placed(std::span<const Tensor> bound) const {
  std::vector<gpubench_tensor> tensors = c_tensors_;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].data = bound[i].data;
  return tensors;
}

}  // namespace gpubench
