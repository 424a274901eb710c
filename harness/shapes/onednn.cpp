// oneDNN's formats: problems of benchdnn, and lines of ONEDNN_VERBOSE with the same problems.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "harness/shapes/shape_reader.h"

namespace gpubench {
namespace {

constexpr std::string_view type_names[] = {"f64",     "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "f4_e2m1",
                                           "f4_e3m0", "s8",  "u8",  "s32",  "s4",      "u4"};

bool is_type(std::string_view word) {
  return std::find(std::begin(type_names), std::end(type_names), word) != std::end(type_names);
}

std::vector<std::int64_t> extents_of(const ShapeReader& reader, std::string_view word) {
  std::vector<std::int64_t> extents;
  for (const std::string_view one : split(word, 'x')) extents.push_back(reader.whole(one, "an extent"));
  return extents;
}

// "64x768:768x2304", optionally with batches before the matrices and the result after them. None, after a note, for a
// product that no workload has.
std::optional<ListedProduct> product_of(ShapeReader& reader, std::string_view problem) {
  const std::vector<std::string_view> parts = split(problem, ':');
  if (parts.size() != 2 && parts.size() != 3)
    reader.refuse(fmt::format("'{}' is not a matrix product; expected MxK:KxN", shown(problem)));
  const auto a = extents_of(reader, parts[0]), b = extents_of(reader, parts[1]);
  const std::size_t axes = a.size();
  if (axes < 2 || b.size() != axes || a[axes - 1] != b[axes - 2])
    reader.refuse(fmt::format("'{}' is not a matrix product; expected MxK:KxN with one K", shown(problem)));
  ListedProduct product{1, a[axes - 2], b[axes - 1], a[axes - 1]};
  for (std::size_t i = 0; i + 2 < axes; ++i) {
    if (a[i] != b[i]) {
      reader.leave_out("a product that broadcasts one of its factors");
      return std::nullopt;
    }
    product.batch = reader.whole(std::to_string(product.batch * a[i]), "the number of matrices");
  }
  return product;
}

// "mb32_ic64ih56oc64oh56kh3ph1n"name"": missing values follow from the rest, as in benchdnn's driver_conv.md.
class ConvolutionProblem {
 public:
  ConvolutionProblem(ShapeReader& reader, std::string_view text) : reader_(reader), text_(text) {
    for (std::string_view rest = text; !rest.empty();) {
      if (rest.front() == '_') {
        rest.remove_prefix(1);
        continue;
      }
      if (rest.front() == 'n') break;  // its name
      const std::size_t letters = std::min(rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), rest.size());
      const std::string_view key = rest.substr(0, letters);
      rest.remove_prefix(letters);
      const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
      const bool known = std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
      if (!known) expected();
      const bool may_be_zero = key.front() == 'p' || key.front() == 'd';
      if (!values_.emplace(key, reader.whole(rest.substr(0, digits), key, may_be_zero ? 0 : 1)).second) expected();
      rest.remove_prefix(digits);
    }
  }

  /// None, after a note, if no workload has it.
  [[nodiscard]] std::optional<ListedConvolution> convolution(ConvDirection direction) {
    if (has("id") || has("kd")) {
      reader_.leave_out("a convolution in three dimensions");
      return std::nullopt;
    }
    if (!has("ih") && !has("iw")) expected();
    ListedConvolution c;
    c.direction = direction;
    c.groups = value("g", 1);
    c.n = value("mb", 2);
    c.c = required("ic");
    c.k = required("oc");
    const bool flat = !has("ih") && has("iw");  // one-dimensional: the width
    const Side w = side('w', has("iw") ? 'w' : 'h'), h = flat ? Side{} : side('h', has("ih") ? 'h' : 'w');
    c.h = h.in, c.r = h.filter, c.stride_h = h.stride, c.pad_h = h.pad, c.dilation_h = h.dilation, c.out_h = h.out;
    c.w = w.in, c.s = w.filter, c.stride_w = w.stride, c.pad_w = w.pad, c.dilation_w = w.dilation, c.out_w = w.out;
    return c;
  }

 private:
  struct Side {
    std::int64_t in = 1, filter = 1, stride = 1, pad = 0, dilation = 1, out = 1;
  };

  static constexpr std::string_view keys[] = {"g",  "mb", "ic", "oc", "id", "ih", "iw", "od", "oh", "ow", "kd",
                                              "kh", "kw", "sd", "sh", "sw", "pd", "ph", "pw", "dd", "dh", "dw"};

  [[noreturn]] void expected() const {
    reader_.refuse(fmt::format("'{}' is not a convolution; expected a problem such as mb32ic3ih224oc64oh112kh7sh2ph3",
                               shown(text_)));
  }
  [[nodiscard]] bool has(const std::string& key) const { return values_.contains(key); }
  [[nodiscard]] std::int64_t value(const std::string& key, std::int64_t otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  [[nodiscard]] std::int64_t required(const std::string& key) const {
    if (!has(key)) expected();
    return value(key, 0);
  }
  // A value for both dimensions; a missing one equals the other.
  [[nodiscard]] Side side(char own, char other) const {
    const auto of = [&](const char* kind) {
      const std::string key = std::string(kind) + own;
      return has(key) ? key : std::string(kind) + other;
    };
    Side side;
    side.in = required(of("i"));
    side.filter = required(of("k"));
    side.stride = value(of("s"), 1);
    side.dilation = value(of("d"), 0) + 1;
    side.out = value(of("o"), 0);
    const std::int64_t reach = side.dilation * (side.filter - 1) + 1;
    const std::int64_t missing = side.out == 0 ? 0 : (side.out - 1) * side.stride + reach - side.in;
    side.pad = value(of("p"), std::max<std::int64_t>(missing, 0) / 2);
    return side;
  }

  ShapeReader& reader_;
  std::string_view text_;
  std::map<std::string, std::int64_t, std::less<>> values_;
};

// Without the name that follows n: 64x32:32x16n"a", 64x32:32x16_n"a".
std::string_view unnamed(std::string_view product) { return product.substr(0, product.find_first_of("_n\"")); }

// Lists of networks append the number of occurrences to a problem's name: ...n"resnet_50:res2a_branch1*4".
std::string_view times_in(std::string_view word) {
  if (!word.ends_with('"')) return "1";
  const std::string_view name = word.substr(0, word.size() - 1);
  const std::string_view times = name.substr(name.rfind('*') + 1);  // the whole name if it has none
  return !times.empty() && times.find_first_not_of("0123456789") == times.npos ? times : "1";
}

bool is_product(std::string_view word) {
  const std::string_view problem = unnamed(word);
  const std::size_t colon = problem.find(':');
  return colon != problem.npos && problem.find_first_not_of("0123456789x:") == problem.npos && problem.front() != ':' &&
         problem.substr(0, colon).find('x') != problem.npos;
}

bool is_convolution(std::string_view word) {
  word = word.substr(0, word.find('"'));
  const auto extent_after = [word](std::string_view key) {
    const std::size_t at = word.find(key);
    return at != word.npos && at + key.size() < word.size() && word[at + key.size()] >= '0' &&
           word[at + key.size()] <= '9';
  };
  return !word.starts_with('-') && word.find('=') == word.npos && extent_after("ic") && extent_after("oc") &&
         (extent_after("id") || extent_after("ih") || extent_after("iw"));
}

enum class Order { rows, columns, another };  // row-major, transposed, other

// "ab" of two axes, "abc" of three. If the library chooses (any), row-major.
Order order_of(std::string_view tag, std::size_t axes) {
  constexpr std::string_view letters = "abcdefghijkl";
  if (tag.empty() || tag == "any" || tag == "undef" || tag == "abx") return Order::rows;
  if (axes < 2 || tag.size() != axes || axes > letters.size()) return Order::another;
  std::string plain(letters.substr(0, axes));
  if (tag == plain) return Order::rows;
  std::swap(plain[axes - 1], plain[axes - 2]);
  return tag == plain ? Order::columns : Order::another;
}

struct Tags {
  std::string_view a, b, c;
};

void add_product(ShapeReader& reader, std::string_view problem, const Tags& tags, const ListedTypes& types) {
  std::optional<ListedProduct> product = product_of(reader, problem);
  if (!product) return;
  const std::string_view first = problem.substr(0, problem.find(':'));
  const std::size_t axes = static_cast<std::size_t>(std::count(first.begin(), first.end(), 'x')) + 1;
  const Order a = order_of(tags.a, axes), b = order_of(tags.b, axes);
  if (a == Order::another || b == Order::another || order_of(tags.c, axes) != Order::rows) {
    return reader.leave_out(
        fmt::format("a product in the layouts {}, {} -> {}", shown(tags.a), shown(tags.b), shown(tags.c)));
  }
  product->transpose_a = a == Order::columns;
  product->transpose_b = b == Order::columns;
  reader.add(*product, types);
}

void add_convolution(ShapeReader& reader, std::string_view problem, ConvDirection direction, const ListedTypes& types) {
  if (const auto c = ConvolutionProblem(reader, problem).convolution(direction)) reader.add(*c, types);
}

// benchdnn: knobs with one or several values; each problem runs with every combination.

using Values = std::vector<std::string_view>;

// "f32", "bf16:bf16:f32" of source, weights and result; configurations of oneDNN 2 have no colons.
std::optional<ListedTypes> types_of(std::string_view word) {
  const Values parts = split(word, ':');
  const auto text = [](std::string_view part) { return std::string(part); };
  if (parts.size() == 1 && is_type(word)) return ListedTypes{text(word), text(word), text(word)};
  if (parts.size() == 3) return ListedTypes{text(parts[0]), text(parts[1]), text(parts[2])};
  for (const std::string_view type : {"bf16", "f16", "f32"}) {
    std::string thrice;
    for (int i = 0; i < 3; ++i) thrice += type;
    if (word == thrice) return ListedTypes{text(type), text(type), text(type)};
  }
  return std::nullopt;
}

struct Pass {
  std::string_view name;
  ConvDirection direction;
  bool has_bias = false;
};

const Pass* find_pass(std::string_view word) {
  static constexpr Pass passes[] = {
      {"FWD_B", ConvDirection::forward, true},   {"FWD_D", ConvDirection::forward},
      {"FWD_I", ConvDirection::forward},         {"BWD_D", ConvDirection::backward_data},
      {"BWD_W", ConvDirection::backward_filter}, {"BWD_WB", ConvDirection::backward_filter, true}};
  const auto same = [word](const Pass& pass) {
    return std::ranges::equal(pass.name, word, {}, {}, [](unsigned char c) { return std::toupper(c); });
  };
  const auto* const found = std::ranges::find_if(passes, same);
  return found == std::end(passes) ? nullptr : found;
}

// Knobs of the measurement, not of the work.
constexpr std::string_view idle_knobs[] = {"--alg",
                                           "--allow-enum-tags-only",
                                           "--bia-mask",
                                           "--canonical",
                                           "--check-ref-impl",
                                           "--conv",
                                           "--cpu-isa-hints",
                                           "--engine",
                                           "--fast-ref",
                                           "--impl",
                                           "--matmul",
                                           "--mode",
                                           "--mode-modifier",
                                           "--perf-template",
                                           "--runtime-dims-masks",
                                           "--skip-impl",
                                           "--attr-fpmath",
                                           "--attr-scratchpad",
                                           "--attr-deterministic"};
// Knobs that run() and the products and convolutions use.
constexpr std::string_view used_knobs[] = {"--bia-dt", "--cfg",  "--dir",     "--dt",  "--dtag",
                                           "--mb",     "--stag", "--strides", "--wtag"};
// Knobs of sparse matrices and of products in groups.
constexpr std::string_view other_matrices[] = {"--encoding", "--grouped", "--sparse-options"};

class Benchdnn {
 public:
  explicit Benchdnn(ShapeReader& reader) : reader_(reader) {}

  // The rest of the current file.
  void read() {
    std::string joined;  // a trailing backslash continues a line
    while (reader_.next()) {
      const std::string_view line = trimmed(reader_.line().substr(0, reader_.line().find('#')));
      joined += line;
      if (joined.ends_with('\\')) {
        joined.pop_back();
        joined = trimmed(joined);
        continue;
      }
      texts_.push_back(std::move(joined));  // owns the text of the knobs' values
      joined.clear();
      for (const std::string_view word : words_of(texts_.back())) take(word);
    }
  }

 private:
  void take(std::string_view word) {
    if (word.starts_with('-')) return knob(word);
    reader_.count_each_as(reader_.whole(times_in(word), "the number of calls in the problem's name"));
    try {
      if (is_product(word)) return products(unnamed(word));
      if (is_convolution(word)) return convolutions(word);
    } catch (const TooLarge&) {
      return reader_.leave_out("a problem with an extent above 2^30");
    }
    reader_.leave_out("a problem of an unknown form");
  }

  // Versions of oneDNN write --bia_dt or --bia-dt.
  void knob(std::string_view word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string name(word.substr(0, equals));
    std::ranges::replace(name, '_', '-');
    const std::string_view value = word.substr(std::min(equals + 1, word.size()));
    if (name == "--reset") return knobs_.clear();
    if (name == "--batch") {
      if (!reader_.enter(value)) return;
      read();
      return reader_.leave();
    }
    knobs_[name] = split(value, ',');
    constexpr std::size_t most = 16;
    if (is_one_of(name, used_knobs) && knobs_[name].size() > most)
      reader_.refuse(fmt::format("{} has more than {} values", shown(name), most));
  }

  static bool is_one_of(std::string_view name, std::span<const std::string_view> knobs) {
    return std::ranges::find(knobs, name) != knobs.end();
  }

  [[nodiscard]] Values values(std::string_view name, std::string_view otherwise) const {
    const auto found = knobs_.find(name);
    return found == knobs_.end() || found->second == Values{""} ? Values{otherwise} : found->second;
  }

  // Knobs that change the work but are not part of any case: noted, and not measured.
  [[nodiscard]] std::vector<std::string> missing(bool has_bias) const {
    std::vector<std::string> parts;
    if (has_bias) parts.emplace_back("the bias");
    for (const auto& [name, values] : knobs_) {
      const bool is_knob = name.starts_with("--") && !is_one_of(name, idle_knobs) && !is_one_of(name, used_knobs);
      if (is_knob && values != Values{""}) parts.push_back(shown(name));
    }
    return parts;
  }

  // Whether the problem's tensors are none that a case has; after a note.
  bool leaves_out_tensors() {
    const auto is_set = [this](std::string_view name) { return values(name, "") != Values{""}; };
    if (std::ranges::any_of(other_matrices, is_set)) return reader_.leave_out("sparse or grouped matrices"), true;
    if (!is_set("--strides")) return false;
    return reader_.leave_out("tensors with explicit strides"), true;
  }

  template <class Add>
  void each_type(const Add& add) {
    const Values old = values("--cfg", "f32");
    for (const std::string_view word : values("--dt", old.front())) {
      std::optional<ListedTypes> types = types_of(word);
      if (!types) {
        reader_.leave_out("types " + shown(word));
        continue;
      }
      for (const std::string_view setting : values("--attr-fpmath", "strict")) {
        const std::string_view math = setting.substr(0, setting.find(':'));  // "tf32:true": for integers, too
        types->tf32 = math == "tf32";
        if (math.empty() || math == "strict" || math == "tf32")
          add(*types);
        else
          reader_.leave_out("products of inputs rounded to " + shown(math));
      }
    }
  }

  void products(std::string_view problem) {
    if (leaves_out_tensors()) return;
    reader_.take_without(missing(values("--bia-dt", "undef") != Values{"undef"}));
    each_type([&](const ListedTypes& types) {
      for (const std::string_view a : values("--stag", "")) {
        for (const std::string_view b : values("--wtag", "")) {
          for (const std::string_view c : values("--dtag", "")) add_product(reader_, problem, {a, b, c}, types);
        }
      }
    });
  }

  void convolutions(std::string_view problem) {
    if (leaves_out_tensors()) return;
    each_type([&](const ListedTypes& types) {
      for (const std::string_view word : values("--dir", "FWD_B")) {
        const Pass* const pass = find_pass(word);
        if (pass == nullptr)
          reader_.refuse(
              fmt::format("--dir is '{}', expected FWD_B, FWD_D, FWD_I, BWD_D, BWD_W or BWD_WB", shown(word)));
        reader_.take_without(missing(pass->has_bias));
        for (const std::string_view images : values("--mb", "0")) {
          const std::int64_t mb = reader_.whole(images, "--mb", 0);
          const auto c = ConvolutionProblem(reader_, problem).convolution(pass->direction);
          if (!c) continue;
          ListedConvolution with = *c;
          if (mb > 0) with.n = mb;
          reader_.add(with, types);
        }
      }
    });
  }

  ShapeReader& reader_;
  std::deque<std::string> texts_;
  std::map<std::string, Values, std::less<>> knobs_;
};

bool is_benchdnn(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line.substr(0, line.find('#')));
  if (words.empty()) return false;
  const std::string_view first = words.front();
  const bool is_knob = first.starts_with("--") && (first.find('=') != first.npos || first == "--reset" ||
                                                   first == "--conv" || first == "--matmul");
  return is_knob || is_product(first) || is_convolution(first);
}

void read_benchdnn(ShapeReader& reader) { Benchdnn(reader).read(); }

// ONEDNN_VERBOSE, versions 2 and 3: "onednn_verbose[,v0|v1][,TIME][,primitive],exec,ENGINE,PRIMITIVE,IMPLEMENTATION,
// PROPAGATION,MEMORY,ATTRIBUTES,AUXILIARY,PROBLEM,MILLISECONDS".

std::size_t marker_end(std::string_view line) {
  for (const std::string_view marker : {"onednn_verbose,", "dnnl_verbose,"}) {
    if (const std::size_t at = line.find(marker); at != line.npos) return at + marker.size();
  }
  return line.npos;
}

bool is_verbose(std::string_view line) { return marker_end(line) != line.npos; }

// One tensor: "src_f32::blocked:ab:f0", "wei:bf16:a:blocked:BA16a64b2a::f0".
struct Memory {
  std::string_view name, type, tag;
  bool chosen = false;   // the library chooses the layout
  bool strided = false;  // its rows have gaps
};

Memory memory_of(std::string_view word) {
  Values parts = split(word, ':');
  parts.resize(std::max<std::size_t>(parts.size(), 8));
  Memory memory;
  std::size_t properties = 1;
  if (is_type(parts[1])) {  // v1
    memory.name = parts[0];
    memory.type = parts[1];
    properties = 2;
    memory.strided = !parts[5].empty();
  } else {
    const std::size_t underscore = std::min(parts[0].rfind('_'), parts[0].size());
    memory.name = parts[0].substr(0, underscore);
    memory.type = parts[0].substr(std::min(underscore + 1, parts[0].size()));
    // "src_f8_e4m3" has an underscore in its type.
    for (const std::string_view type : {"f8_e4m3", "f8_e5m2", "f4_e2m1"}) {
      if (!parts[0].ends_with(type) || parts[0].size() <= type.size()) continue;
      memory.name = parts[0].substr(0, parts[0].size() - type.size() - 1);
      memory.type = type;
    }
  }
  memory.chosen = parts[properties].find('a') != std::string_view::npos;
  memory.tag = parts[properties + 2];
  return memory;
}

// The tensor of one of these names, of the gradient if there is one; empty if absent.
Memory tensor_named(std::span<const Memory> all, std::string_view name) {
  for (const Memory& memory : all) {
    if (memory.name == name || (memory.name.starts_with("diff_") && memory.name.substr(5) == name)) return memory;
  }
  return {};
}

void read_call(ShapeReader& reader, const Values& fields) {
  enum { primitive = 2, propagation = 4, memories = 5, attributes = 6, problem = 8, milliseconds = 9 };
  if (fields.size() <= milliseconds)
    reader.refuse(
        "the line ends early; expected exec,ENGINE,PRIMITIVE,IMPLEMENTATION,PROPAGATION,MEMORY,ATTRIBUTES,"
        "AUXILIARY,PROBLEM,MILLISECONDS");
  const bool is_matmul = fields[primitive] == "matmul";
  if (!is_matmul && fields[primitive] != "convolution")
    return reader.leave_out("primitive " + shown(fields[primitive]));
  std::vector<Memory> all;
  for (const std::string_view word : words_of(fields[memories])) all.push_back(memory_of(word));
  const Memory src = tensor_named(all, "src"), wei = tensor_named(all, "wei"), dst = tensor_named(all, "dst");
  if (src.type.empty() || wei.type.empty() || dst.type.empty())
    reader.refuse(fmt::format("'{}' does not name src, wei and dst with their types", shown(fields[memories])));
  ListedTypes types{std::string(src.type), std::string(wei.type), std::string(dst.type)};
  const std::string_view attribute = fields[attributes];
  types.tf32 = attribute.find("fpmath:tf32") != attribute.npos;
  if (!types.tf32 && attribute.find("fpmath:") != attribute.npos && attribute.find("fpmath:strict") == attribute.npos)
    return reader.leave_out("products of inputs that are rounded (fpmath)");
  std::vector<std::string> missing;
  for (const char* part : {"post-ops", "scales", "zero-points", "dropout"}) {
    if (attribute.find(part) != attribute.npos) missing.emplace_back(part);
  }
  if (const Memory bias = tensor_named(all, "bia"); !bias.type.empty() && bias.type != "undef")
    missing.emplace_back("the bias");
  reader.take_without(std::move(missing));
  if (is_matmul) {
    if (src.strided || wei.strided || dst.strided) return reader.leave_out("tensors with explicit strides");
    const auto tag = [](const Memory& m) { return m.chosen ? std::string_view("any") : m.tag; };
    if (!is_product(fields[problem]))
      reader.refuse(fmt::format("'{}' is not a matrix product; expected MxK:KxN", shown(fields[problem])));
    return add_product(reader, unnamed(fields[problem]), {tag(src), tag(wei), tag(dst)}, types);
  }
  const std::string_view direction = fields[propagation];
  if (direction.starts_with("forward")) return add_convolution(reader, fields[problem], ConvDirection::forward, types);
  if (direction == "backward_data")
    return add_convolution(reader, fields[problem], ConvDirection::backward_data, types);
  if (direction == "backward_weights")
    return add_convolution(reader, fields[problem], ConvDirection::backward_filter, types);
  reader.refuse(fmt::format(
      "'{}' is not a direction; expected forward_training, forward_inference, backward_data or backward_weights",
      shown(direction)));
}

void read_verbose(ShapeReader& reader) {
  while (reader.next()) {
    const std::size_t begin = marker_end(reader.line());
    if (begin == std::string_view::npos) continue;  // output of the program
    Values fields = split(reader.line().substr(begin), ',');
    const auto leads = [](std::string_view field) {
      return field == "primitive" || field == "v0" || field == "v1" ||
             (!field.empty() && field.find_first_not_of("0123456789.") == field.npos);
    };
    const auto first = std::find_if_not(fields.begin(), fields.end(), leads);
    if (first == fields.end()) continue;
    // "graph,exec,...", "ukernel,exec,...": calls whose problem is not in one line.
    if (*first != "exec" && first + 1 != fields.end() && first[1] == "exec") {
      reader.leave_out("component " + shown(*first));
      continue;
    }
    if (*first != "exec") continue;  // creations, and information about the library
    read_call(reader, Values(first, fields.end()));
  }
}

}  // namespace

const ShapeFormat onednn_verbose_format{"ONEDNN_VERBOSE", is_verbose, read_verbose};
const ShapeFormat benchdnn_format{"benchdnn", is_benchdnn, read_benchdnn};

}  // namespace gpubench
