#include "harness/run/check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <vector>

#include "harness/core/file/descriptor.h"
#include "harness/core/op_kind.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

constexpr double max_flop = 5e8;         // 1 s to 2 s: less than a worker may be silent
constexpr std::int64_t piece = 1 << 14;  // elements at a time

/// Its text ends the op's reason.
class CannotSave : public std::runtime_error {
 public:
  explicit CannotSave(const std::string& what) : std::runtime_error(what) {}
};

std::string file_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    name += plain || (std::string_view("._=,+-@'").find(c) != std::string_view::npos && c != '\'') ? c : '_';
  }
  return name.starts_with(".") ? "_" + name : name;
}

void make_folder(const std::string& path, bool must_be_new) {
  if (::mkdir(path.c_str(), 0700) == 0) return;
  const int why = errno;
  struct stat status {};
  const bool is_folder = ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);  // not a link to a folder
  if (why == EEXIST && !must_be_new && is_folder) return;
  errno = why;
  throw CannotSave(fmt::format("{}: {}", path, std::strerror(errno)));
}

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
    if (file_.get() < 0) fail();
  }
  void write(const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = retried([&] { return ::write(file_.get(), at, bytes); });
      if (written < 0) fail();
      at += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }
  void write(const std::string& text) { write(text.data(), text.size()); }

 private:
  [[noreturn]] void fail() const { throw CannotSave(fmt::format("{}: {}", path_, std::strerror(errno))); }
  std::string path_;
  Descriptor file_;
};

// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0
std::string npy_head(const char* type, const Shape& shape) {
  std::string extents;
  for (const std::int64_t extent : shape.extents()) extents += fmt::format("{}, ", extent);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
  constexpr std::size_t before = 10, unit = 64;
  text.append(unit - 1 - (before + text.size()) % unit, ' ');
  text += '\n';
  const auto length = static_cast<unsigned>(text.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xffU) + static_cast<char>(length >> 8U) +
         text;
}

const char* npy_type(DType type) {
  switch (type) {
    case DType::f64: return "<f8";
    case DType::f32: return "<f4";
    case DType::f16: return "<f2";
    case DType::bf16: return "<u2";
    case DType::i32: return "<i4";
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f4_e2m1:
    case DType::u8: break;
  }
  return "|u1";
}

std::int64_t npy_bytes(const TensorSpec& spec) {
  return spec.shape.elements() * std::max<std::int64_t>(1, bits_of(spec.dtype) / 8);
}

void save_stored(const std::string& path, const TensorView& view) {
  File file(path);
  const DType type = view.dtype();
  file.write(npy_head(npy_type(type), view.shape()));
  const auto bytes = static_cast<std::size_t>(std::max(1, bits_of(type) / 8));
  std::vector<std::byte> packed(static_cast<std::size_t>(bytes_of(type, piece)));
  std::vector<std::byte> out(bytes * piece);
  for (std::int64_t first = 0; first < view.shape().elements(); first += piece) {
    const std::int64_t count = std::min(piece, view.shape().elements() - first);
    view.read_bits(first, count, packed.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t bits = load_bits(type, packed.data(), i);
      std::memcpy(out.data() + static_cast<std::size_t>(i) * bytes, &bits, bytes);  // little-endian, as in .npy
    }
    file.write(out.data(), static_cast<std::size_t>(count) * bytes);
  }
}

// The units of an output to compute, ascending: all, or evenly spaced ones and the worst.
std::vector<std::int64_t> wanted_units(const CheckUnits& units, const TensorSpec& spec, const OpParity& parity) {
  const double cost = static_cast<double>(units.count) * std::max(1.0, units.flop_per_unit);
  const auto step = static_cast<std::int64_t>(std::max(1.0, std::ceil(cost / max_flop)));
  std::vector<std::int64_t> wanted;
  for (std::int64_t unit = 0; unit < units.count; unit += step) wanted.push_back(unit);
  if (parity.worst && parity.worst->tensor == spec.name) {
    std::int64_t linear = 0;
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      linear = linear * spec.shape[axis] + parity.worst->index.at(static_cast<std::size_t>(axis));
    wanted.push_back(linear / units.elements);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

void save_expected(const std::string& path, const Program& program, int op, const OpView& view, int output,
                   const OpParity& parity) {
  const OpCall& call = program.op(op);
  const OpDefinition& meaning = definition(call.kind);
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs), outputs = specs_of(program, call.outputs);
  const TensorSpec& spec = outputs[static_cast<std::size_t>(output)];
  const CheckUnits units = meaning.units({call, inputs, outputs}, output);
  const auto elements = static_cast<std::size_t>(spec.shape.elements());
  std::vector<double> values(elements, std::numeric_limits<double>::quiet_NaN());
  std::vector<double> bounds = values;
  const std::vector<std::int64_t> wanted = wanted_units(units, spec, parity);
  const auto at_once = static_cast<std::size_t>(std::max<std::int64_t>(1, piece / units.elements));
  std::vector<Expected> judged(at_once * static_cast<std::size_t>(units.elements));
  for (std::size_t first = 0; first < wanted.size(); first += at_once) {
    const auto some = std::span(wanted).subspan(first, std::min(at_once, wanted.size() - first));
    const auto expected = std::span(judged).first(some.size() * static_cast<std::size_t>(units.elements));
    meaning.evaluate({call, view.inputs, outputs, view.outputs}, output, some, expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto unit = i / static_cast<std::size_t>(units.elements);
      const auto at =
          static_cast<std::size_t>(some[unit] * units.elements) + i % static_cast<std::size_t>(units.elements);
      values[at] = expected[i].value;
      bounds[at] = expected[i].bound;
    }
  }
  for (const auto& [ending, numbers] : {std::pair{".expected.npy", &values}, std::pair{".bound.npy", &bounds}}) {
    File file(path + ending);
    file.write(npy_head("<f8", spec.shape));
    file.write(numbers->data(), numbers->size() * sizeof(double));
  }
}

std::string operand_text(const OperandName& operand) {
  std::string name = operand.item == 0 ? operand.name : fmt::format("{}{}", operand.name, operand.item);
  for (std::size_t at = name.find('\''); at != std::string::npos; at = name.find('\'')) name.replace(at, 1, "_new");
  return name;
}

// {'f64': (1.1102230246251565e-16, 2.2250738585072014e-308), ...
std::string rounding_of_types() {
  std::string text;
  for (const DType type : enum_values<DType>) {
    text += fmt::format("{}'{}': ({}, {})", text.empty() ? "" : ", ", gpubench::name(type), unit_roundoff(type),
                        smallest_normal(type));
  }
  return "{" + text + "}";
}

constexpr std::string_view loader = R"('''What {kind} '{label}' of {key} read and left when it failed ({phase}).

python3 -i load.py    stored[name], expected[name], bound[name] are arrays
'''
import os
import numpy as np

types = {types}
rounding = {rounding}  # of each type: half a unit in the last place at 1, the smallest normal number
folder = os.path.dirname(os.path.abspath(__file__))


def widened(array, kind):
    if kind == 'bf16':
        return (array.astype(np.uint32) << 16).view(np.float32)
    if kind.startswith('f8') or kind.startswith('f4'):
        exponent, mantissa, bias = {{'f8_e4m3': (4, 3, 7), 'f8_e5m2': (5, 2, 15), 'f4_e2m1': (2, 1, 1)}}[kind]
        bits = array.astype(np.int32)
        e, m = bits >> mantissa & (1 << exponent) - 1, bits & (1 << mantissa) - 1
        value = np.where(e == 0, np.ldexp(m, 1 - bias - mantissa), np.ldexp(m + (1 << mantissa), e - bias - mantissa))
        if kind == 'f8_e4m3':
            value = np.where((bits & 0x7f) == 0x7f, np.nan, value)
        if kind == 'f8_e5m2':
            value = np.where(e == 31, np.where(m == 0, np.inf, np.nan), value)
        return np.where(bits >> exponent + mantissa & 1, -value, value)
    return array


def load(name):
    path = os.path.join(folder, name + '.npy')
    return np.load(path) if os.path.exists(path) else None


stored = {{name: widened(load(name), kind) for name, kind in types.items() if load(name) is not None}}
expected = {{name: load(name + '.expected') for name in types if load(name + '.expected') is not None}}
bound = {{name: load(name + '.bound') for name in expected}}
for name in expected:
    with np.errstate(all='ignore'):
        # Half a unit in the last place is allowed as well: the one rounding to the storage type.
        unit, least = rounding[types[name]]
        half_ulp = unit * np.maximum(np.abs(expected[name]), least)
        off = np.abs(stored[name].astype(np.float64) - expected[name]) - bound[name] - half_ulp
        off[np.isnan(stored[name].astype(np.float64)) & ~np.isnan(expected[name])] = np.inf
    known = ~np.isnan(expected[name])
    print(f'{{name}} {{types[name]}}{{list(stored[name].shape)}}: {{int(known.sum())}} of {{known.size}} elements known, '
          f'{{int((off > 0).sum())}} outside their bound')
    order = np.argsort(np.where(np.isnan(off), -np.inf, off), axis=None)[::-1][:10]
    for i in order:
        at = np.unravel_index(i, off.shape)
        if off[at] > 0:
            place = ', '.join(str(int(k)) for k in at)
            print(f'  [{{place}}] got {{stored[name][at]}} want {{expected[name][at]}} +- {{bound[name][at]}}')
)";

}  // namespace

std::string save_failure(const std::string& folder, const std::string& key, const Program& program, int op,
                         const OpView& view, const OpParity& parity, std::int64_t& room) {
  const OpCall& call = program.op(op);
  try {
    const std::string of_case = folder + "/" + file_name(key);
    const std::string place = fmt::format("{}/{}.{}", of_case, file_name(call.label), parity.phase);
    make_folder(of_case, false);
    make_folder(place, true);
    std::vector<OperandName> names = operand_names(call.kind.inputs, call.attributes, call.inputs.size());
    const std::vector<OperandName> outputs = operand_names(call.kind.outputs, call.attributes, call.outputs.size());
    names.insert(names.end(), outputs.begin(), outputs.end());
    std::string types, left_out;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool is_output = i >= view.inputs.size();
      const std::size_t output = i - view.inputs.size();
      const TensorView& tensor = is_output ? view.outputs[output] : view.inputs[i];
      const std::string name = operand_text(names[i]);
      const std::int64_t own = npy_bytes(tensor.spec()) + (is_output ? 16 * tensor.shape().elements() : 0);
      if (own > room) {
        left_out += (left_out.empty() ? "" : ", ") + name;
        continue;
      }
      room -= own;
      types += fmt::format("{}'{}': '{}'", types.empty() ? "" : ", ", name, gpubench::name(tensor.dtype()));
      save_stored(fmt::format("{}/{}.npy", place, name), tensor);
      if (is_output && is_float(tensor.dtype()))
        save_expected(fmt::format("{}/{}", place, name), program, op, view, static_cast<int>(output), parity);
    }
    File(place + "/load.py")
        .write(fmt::format(fmt::runtime(loader), fmt::arg("kind", call.kind.name), fmt::arg("label", call.label),
                           fmt::arg("key", key), fmt::arg("phase", parity.phase), fmt::arg("types", "{" + types + "}"),
                           fmt::arg("rounding", rounding_of_types())));
    return fmt::format(
        "its tensors are in {}{}", place,
        left_out.empty() ? "" : fmt::format(" (over the limit of 1 GiB a case and left out: {})", left_out));
  } catch (const CannotSave& e) {
    return fmt::format("its tensors could not be saved: {}", e.what());
  } catch (const std::bad_alloc&) {
    return "its tensors could not be saved: out of memory";
  }
}

}  // namespace gpubench
