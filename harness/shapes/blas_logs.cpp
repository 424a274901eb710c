// Logs of BLAS libraries: cuBLAS (CUBLAS_LOGINFO_DBG), cuBLASLt (CUBLASLT_LOG_LEVEL), rocBLAS (ROCBLAS_LAYER, as
// commands of rocblas-bench or as YAML).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/shapes/shape_reader.h"

namespace gpubench {
namespace {

using Parts = std::vector<std::string>;
constexpr const char* adding = "adding to the output (beta)";

class Arguments {
 public:
  Arguments(const ShapeReader& reader, std::string_view what) : reader_(reader), what_(what) {}

  void put(std::string_view name, std::string_view value) {
    values_.insert_or_assign(std::string(name), std::string(value));
  }
  [[nodiscard]] bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  [[nodiscard]] std::string_view text(std::string_view name, std::string_view otherwise = "") const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::string_view(found->second);
  }
  [[nodiscard]] std::int64_t whole(std::string_view name) const {
    if (!has(name)) reader_.refuse(fmt::format("{} without its argument {}", what_, name));
    return reader_.whole(text(name), name);
  }
  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t otherwise) const {
    return has(name) ? whole(name) : otherwise;
  }
  /// Also if conjugated: "T", "CUBLAS_OP_T".
  [[nodiscard]] bool transposed(std::string_view name) const {
    const std::string_view value = text(name, "N");
    const char last = value.empty() ? '?' : value.back();
    if (last != 'N' && last != 'T' && last != 'C')
      reader_.refuse(fmt::format("{} is '{}', expected N, T or C", name, shown(value)));
    return last != 'N';
  }

 private:
  const ShapeReader& reader_;
  std::string what_;
  std::map<std::string, std::string, std::less<>> values_;
};

// "CUDA_R_16BF", "R_16BF", "bf16_r" are one type; unknown names are returned unchanged.
std::string type_of(std::string_view word) {
  if (word.starts_with("CUDA_")) word.remove_prefix(5);
  constexpr std::pair<std::string_view, std::string_view> known[] = {{"R_64F", "f64"},
                                                                     {"R_32F", "f32"},
                                                                     {"R_16F", "f16"},
                                                                     {"R_16BF", "bf16"},
                                                                     {"R_8F_E4M3", "f8_e4m3"},
                                                                     {"R_8F_E5M2", "f8_e5m2"},
                                                                     {"R_4F_E2M1", "f4_e2m1"},
                                                                     {"f64_r", "f64"},
                                                                     {"f32_r", "f32"},
                                                                     {"f16_r", "f16"},
                                                                     {"bf16_r", "bf16"},
                                                                     {"d", "f64"},
                                                                     {"s", "f32"},
                                                                     {"h", "f16"}};
  for (const auto& [name, type] : known) {
    if (word == name) return std::string(type);
  }
  return std::string(word);
}

// No recipe has sums narrower than f32; "COMPUTE_32F_FAST_TF32" multiplies f32 in tf32.
bool sums_wide(std::string_view compute) {
  constexpr std::string_view known[] = {"",
                                        "COMPUTE_32F",
                                        "COMPUTE_32F_PEDANTIC",
                                        "COMPUTE_32F_FAST_TF32",
                                        "COMPUTE_64F",
                                        "COMPUTE_64F_PEDANTIC",
                                        "f32_r",
                                        "f64_r",
                                        "CUDA_R_32F",
                                        "CUDA_R_64F"};  // the last two: cuBLAS 10
  if (compute.starts_with("CUBLAS_")) compute.remove_prefix(7);
  return std::find(std::begin(known), std::end(known), compute) != std::end(known);
}

// cuBLAS: "I! cuBLAS (v13.4) function cublasStatus_t NAME(...) called:", then one argument per line, "i!  m: type=int;
// val=512".

bool is_cublas(std::string_view line) { return line.find("I! cuBLAS (v") != line.npos; }

std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t at = text.find(before);
  if (at == text.npos) return {};
  const std::string_view rest = text.substr(at + before.size());
  return rest.substr(0, rest.find(after));
}

struct CublasName {
  std::string_view type;  // empty: given by arguments
  bool strided = false;
};

// "cublasSgemm_v2", "cublasGemmStridedBatchedEx"; none for other functions.
std::optional<CublasName> product_named(std::string_view function) {
  if (!function.starts_with("cublas")) return std::nullopt;
  function.remove_prefix(6);
  const std::size_t gemm = function.starts_with("Gemm") ? 0 : function.find("gemm") == 1 ? 1 : function.npos;
  if (gemm == function.npos) return std::nullopt;
  constexpr std::pair<char, std::string_view> letters[] = {{'S', "f32"}, {'D', "f64"}, {'H', "f16"}};
  CublasName name{gemm == 0 ? "" : "another", function.find("StridedBatched") != function.npos};
  for (const auto& [letter, type] : letters) {
    if (gemm == 1 && function.front() == letter) name.type = type;
  }
  return name;
}

void add_cublas(ShapeReader& reader, std::string_view function, const Arguments& call) {
  const std::optional<CublasName> name = product_named(function);
  if (!name) {
    // Calls without work are not counted.
    for (const char* word : {"Create", "Destroy", "Set", "Get", "Logger"}) {
      if (function.find(word) != function.npos) return;
    }
    return reader.leave_out("function " + shown(function));
  }
  if (!name->strided && function.find("Batched") != function.npos)
    return reader.leave_out("products of matrices given by pointer arrays (" + shown(function) + ")");
  const std::string_view compute = call.text("computeType");
  if (!sums_wide(compute)) return reader.leave_out("sums in " + shown(compute));
  ListedTypes types{std::string(name->type), std::string(name->type), std::string(name->type)};
  if (call.has("Atype"))
    types = {type_of(call.text("Atype")), type_of(call.text("Btype")), type_of(call.text("Ctype"))};
  types.tf32 = compute.ends_with("FAST_TF32") || call.text("MathMode").find("TF32") != std::string_view::npos;
  const BlasProduct product{
      call.whole("batchCount", 1), call.whole("m"),           call.whole("n"),      call.whole("k"),
      call.transposed("transa"),   call.transposed("transb"), call.whole("lda", 0), call.whole("ldb", 0),
      call.whole("ldc", 0)};
  reader.add(product, types);
}

void read_cublas(ShapeReader& reader) {
  std::string function;
  std::optional<Arguments> call;
  const auto end = [&] {
    if (call) add_cublas(reader, function, *call);
    call.reset();
  };
  while (reader.next()) {
    const std::string_view line = reader.line();
    if (is_cublas(line)) {
      end();
      function = trimmed(between(line, "cublasStatus_t ", "("));
      if (!function.empty()) call.emplace(reader, shown(function));
    } else if (const std::size_t at = line.find("i!"); call && at != line.npos) {
      const std::string_view rest = line.substr(at + 2);
      const std::string_view value = between(rest, "val=", ";");
      if (!value.empty()) call->put(trimmed(rest.substr(0, rest.find(':'))), trimmed(value.substr(0, value.find('('))));
      if (const std::string_view mode = between(rest, "MathMode=", ";"); !mode.empty()) call->put("MathMode", mode);
    }
  }
  end();
}

// cuBLASLt: "[cublasLt][PID][Trace][cublasLtMatmul] A=... Adesc=[type=R_16BF rows=768 cols=2304 ld=768] ...". A launch
// has one trace line; other levels repeat it.

bool is_cublaslt(std::string_view line) { return line.find("[cublasLt][") != line.npos; }

// The words of "Adesc=[type=R_32F rows=3 cols=4 ld=3]".
Arguments description(const ShapeReader& reader, std::string_view line, std::string_view name) {
  Arguments words(reader, fmt::format("cuBLASLt's {}", name));
  for (const std::string_view word : words_of(between(line, fmt::format("{}=[", name), "]"))) {
    const std::size_t equals = std::min(word.find('='), word.size());
    words.put(word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
  }
  return words;
}

bool adds(std::string_view beta) { return beta.find_first_not_of("0.") != beta.npos; }

// Scales of blocks of 32 with f8_e4m3, or of 16 with f4_e2m1, make mxfp8 and nvfp4. False: the call has no such scales.
bool add_block_scaled(ShapeReader& reader, std::string_view compute, const BlasProduct& p, const ListedTypes& types) {
  for (const std::string_view scales : {"OUTER_VEC_32F", "VEC128_32F", "BLK128x128_32F"}) {
    if (compute.find(scales) != compute.npos) return reader.leave_out("scales " + shown(scales)), true;
  }
  const bool mx = compute.find("VEC32_UE8M0") != compute.npos, nv = compute.find("VEC16_UE4M3") != compute.npos;
  if (!mx && !nv) return false;
  const std::string_view type = mx ? "f8_e4m3" : "f4_e2m1";
  if (types.a != type || types.b != type || !p.transpose_a || p.transpose_b || p.batch != 1)
    return reader.leave_out("products with scales of blocks in other types or layouts"), true;
  reader.add(
      ListedShape{"gemm", "block_scaled_matmul", {{"m", p.n}, {"n", p.m}, {"k", p.k}}, mx ? "mxfp8" : "nvfp4", 1.0});
  return true;
}

void read_cublaslt(ShapeReader& reader) {
  while (reader.next()) {
    const std::string_view line = reader.line();
    const std::string_view function = between(line, "[Trace][", "]");
    if (!is_cublaslt(line) || !function.ends_with("Matmul")) continue;
    const Arguments a = description(reader, line, "Adesc"), b = description(reader, line, "Bdesc");
    const Arguments c = description(reader, line, "Cdesc"), d = description(reader, line, "Ddesc");
    const Arguments compute = description(reader, line, "computeDesc");
    if (!sums_wide(compute.text("computeType"))) {
      reader.leave_out("sums in " + shown(compute.text("computeType")));
      continue;
    }
    if (a.has("order") || b.has("order") || d.has("order")) {
      reader.leave_out("matrices that are not column-major");
      continue;
    }
    BlasProduct product;
    product.batch = d.whole("batchCount", 1);
    product.transpose_a = compute.transposed("transa");
    product.transpose_b = compute.transposed("transb");
    product.m = d.whole("rows");
    product.n = d.whole("cols");
    product.k = a.whole(product.transpose_a ? "rows" : "cols");
    product.lda = a.whole("ld"), product.ldb = b.whole("ld"), product.ldc = d.whole("ld");
    Parts missing;
    if (const std::string_view epilogue = compute.text("epilogue"); !epilogue.empty())
      missing.push_back("epilogue " + shown(epilogue));
    if (adds(between(line, " beta=", " "))) missing.emplace_back(adding);
    reader.take_without(std::move(missing));
    ListedTypes types{type_of(a.text("type")), type_of(b.text("type")), type_of(d.text("type"))};
    types.tf32 = compute.text("computeType").ends_with("FAST_TF32");
    if (!add_block_scaled(reader, between(line, "computeDesc=[", "]"), product, types)) reader.add(product, types);
  }
}

// rocBLAS: "./rocblas-bench -f gemm -r f32_r --transposeA N ... -m 512", or "- { rocblas_function: "rocblas_sgemm",
// transA: 'N', ..., M: 512, ..., call_count: 3 }".

bool is_rocblas(std::string_view line) {
  return line.find("rocblas-bench ") != line.npos || line.find("rocblas_function:") != line.npos;
}

std::string_view unquoted(std::string_view word) {
  const std::size_t first = word.find_first_not_of("\"'");
  return first == word.npos ? std::string_view() : word.substr(first, word.find_last_not_of("\"'") - first + 1);
}

void put_bench(Arguments& call, std::string_view line) {
  const std::string_view command = line.substr(line.find("rocblas-bench ") + 14);
  std::string_view name;
  for (const std::string_view word : words_of(command)) {
    const bool is_flag = word.size() > 1 && word.front() == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
    if (is_flag)
      name = word.substr(word.find_first_not_of('-') == word.npos ? word.size() : word.find_first_not_of('-'));
    else if (!name.empty())
      call.put(name, word);
  }
}

void put_yaml(Arguments& call, std::string_view line) {
  for (const std::string_view pair : split(between(line, "{", "}"), ',')) {
    const std::size_t colon = std::min(pair.find(':'), pair.size());
    call.put(trimmed(pair.substr(0, colon)), unquoted(trimmed(pair.substr(std::min(colon + 1, pair.size())))));
  }
}

void add_rocblas(ShapeReader& reader, const Arguments& call, bool is_yaml) {
  std::string_view function = call.text(is_yaml ? "rocblas_function" : "f");
  if (function.starts_with("rocblas_")) function.remove_prefix(8);
  const double calls = static_cast<double>(call.whole("call_count", 1));
  const bool extended = function.ends_with("_ex");
  std::string_view plain = function.substr(0, function.size() - (extended ? 3 : 0));
  const bool strided = plain.ends_with("_strided_batched");
  if (strided) plain.remove_suffix(16);
  std::string_view letter;  // of "sgemm"
  if (is_yaml && !extended && plain.size() == 5) {
    letter = plain.substr(0, 1);
    plain.remove_prefix(1);
  }
  if (plain != "gemm") return reader.leave_out("function " + shown(function), calls);
  const std::string one = type_of(letter.empty() ? call.text("r", "f32_r") : letter);
  ListedTypes types{one, one, one};
  if (call.has("a_type"))
    types = {type_of(call.text("a_type")), type_of(call.text("b_type")), type_of(call.text("c_type"))};
  if (!sums_wide(call.text("compute_type")))
    return reader.leave_out("sums in " + shown(call.text("compute_type")), calls);
  types.tf32 = call.text("math_mode") == "1";
  reader.take_without(adds(call.text("beta", "0")) ? Parts{adding} : Parts{});
  const auto name = [is_yaml](const char* yaml, const char* bench) { return is_yaml ? yaml : bench; };
  const BlasProduct product{call.whole("batch_count", 1),
                            call.whole(name("M", "m")),
                            call.whole(name("N", "n")),
                            call.whole(name("K", "k")),
                            call.transposed(name("transA", "transposeA")),
                            call.transposed(name("transB", "transposeB")),
                            call.whole("lda", 0),
                            call.whole("ldb", 0),
                            call.whole("ldc", 0)};
  reader.add(product, types, calls);
}

void read_rocblas(ShapeReader& reader) {
  while (reader.next()) {
    if (!is_rocblas(reader.line())) continue;
    const bool is_yaml = reader.line().find("rocblas_function:") != std::string_view::npos;
    Arguments call(reader, "rocBLAS's call");
    if (is_yaml)
      put_yaml(call, reader.line());
    else
      put_bench(call, reader.line());
    add_rocblas(reader, call, is_yaml);
  }
}

}  // namespace

const ShapeFormat cublas_format{"cuBLAS", is_cublas, read_cublas};
const ShapeFormat cublaslt_format{"cuBLASLt", is_cublaslt, read_cublaslt};
const ShapeFormat rocblas_format{"rocBLAS", is_rocblas, read_rocblas};

}  // namespace gpubench
