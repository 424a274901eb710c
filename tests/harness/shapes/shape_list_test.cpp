#include "harness/shapes/shape_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "harness/plan/plan.h"
#include "harness/report/console.h"
#include "suites/suites.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace shape_list_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Without the recipe if the list has none.
std::vector<std::string> shapes_of(const ShapeList& list) {
  std::vector<std::string> texts;
  for (const ListedShape& s : list.shapes)
    texts.push_back(std::to_string(static_cast<int>(s.calls)) + " " + s.suite + "/" + s.workload + "/" +
                    to_string(s.dims) + (s.recipe.empty() ? "" : "/" + s.recipe));
  return texts;
}

std::vector<std::string> excepts_of(const ShapeList& list) {
  std::vector<std::string> texts;
  for (const ShapesExcept& except : list.source.excepts) texts.push_back(text_of(except));
  return texts;
}

std::string error_of(const std::string& text) {
  try {
    ShapeList list = parse_shape_list(text, "a.list");
    (void)listed_suites(all_suites(), list, false);
    return "none";
  } catch (const UsageError& e) {
    return e.what();
  }
}

std::vector<std::string> planned_ids(const std::string& text, Selection selection = {}) {
  ShapeList list = parse_shape_list(text, "a.list");
  const std::vector<Suite> suites = listed_suites(all_suites(), list, !selection.precisions.empty());
  std::vector<std::string> ids;
  for (const PlannedCase& planned : plan_cases(suites, selection)) ids.push_back(planned.id());
  return ids;
}

TEST(ShapeList, BenchdnnRunsEachProblemWithEveryCombinationOfItsKnobs) {
  const ShapeList list = parse_shape_list(
      "# a comment\n"
      "--reset\n"
      "--dt=f32,bf16 --wtag=ab,ba\n"
      "64x128:128x96n\"a\"\n"
      "--reset --stag=ba\n"
      "64x128:128x96:64x96\n"
      "4x64x32:4x32x64\n"
      "--wtag=acb --stag=abc 4x64x32:4x32x64\n",
      "a.list");
  EXPECT_EQ(list.source.format, "benchdnn");
  // A transposed first factor [128, 64]^T [128, 96]: dw [n, k] = dy [m, n]^T x [m, k] with m = 128, n = 64, k = 96.
  EXPECT_THAT(
      shapes_of(list),
      ElementsAre("1 gemm/matmul/m=64,n=96,k=128/f32", "1 gemm/linear_forward/m=64,n=96,k=128/f32",
                  "1 gemm/matmul/m=64,n=96,k=128/bf16", "1 gemm/linear_forward/m=64,n=96,k=128/bf16",
                  "1 gemm/linear_backward_weight/m=128,n=64,k=96/f32", "1 gemm/batched_matmul/b=4,m=64,n=64,k=32/f32"));
  EXPECT_THAT(excepts_of(list), ElementsAre("1 call left out: a product in the layouts ba,  -> "));
}

TEST(ShapeList, BenchdnnsNamesSayHowOftenANetworkHasAProblem) {
  const ShapeList list = parse_shape_list(
      "8x16:16x32_n\"net:first*4\"\n"
      "8x16:16x64n\"2*net:second\"\n"
      "8x16:16x128n\"12\"\n"
      "--dir=FWD_B ic16ih8oc16oh8kh3ph1n\"net:third*23\"\n",
      "a.list");
  EXPECT_THAT(
      shapes_of(list),
      ElementsAre("4 gemm/matmul/m=8,n=32,k=16/f32", "1 gemm/matmul/m=8,n=64,k=16/f32",
                  "1 gemm/matmul/m=8,n=128,k=16/f32",
                  "23 conv/conv2d_forward/n=2,h=8,w=8,c=16,k=16,r=3,s=3,stride=1,pad=1,dilation=1,groups=1/f32"));
  EXPECT_THAT(excepts_of(list), ElementsAre("23 calls taken without the bias"));
}

// Each list names the other; one names itself, one a file elsewhere. Knobs hold across files, as in benchdnn.
using ShapeListFiles = ScratchFolder;
TEST_F(ShapeListFiles, OfBenchdnnNameOthersInTheirFolder) {
  write("first.list", "--dt=bf16\n--batch=second 8x4:4x2\n--batch=../second --batch=none\n");
  write("second",
        "\xEF\xBB\xBF"
        "8x16:16x32\r\n--batch=second --batch=first.list --dt=f32\n");
  const ShapeList list = read_shape_list("first.list");
  EXPECT_THAT(shapes_of(list), ElementsAre("1 gemm/matmul/m=8,n=32,k=16/bf16", "1 gemm/matmul/m=8,n=2,k=4/f32"));
  EXPECT_THAT(excepts_of(list),
              ElementsAre("1 call left out: the list second (it names itself)",
                          "1 call left out: the list first.list (it names itself)",
                          "1 call left out: the list ../second (only lists in the folder of this one are read)",
                          "1 call left out: the list none (not found)"));
  EXPECT_THAT(excepts_of(parse_shape_list("--batch=second\n", "a.list")),
              ElementsAre("1 call left out: the list second (only lists in the folder of this one are read)"));
}

// Of three calls of a product one has a type that no recipe has: two are taken without a bias.
TEST(ShapeList, BenchdnnProblemsAndKnobsThatNoCaseHasAreNoted) {
  const ShapeList list = parse_shape_list(
      "--sum=2 --skip-impl=ref --bia-dt=f32 --attr-post-ops=relu,tanh --dt=f32,s4,bf16\n"
      "8x4:4x2\n"
      "--reset --encoding=csr 8x4:4x2\n"
      "--reset --strides=8x1:8x1:8x1 8x4:4x2 --strides=\n"
      "64x64 --attr-fpmath=,tf32:true 8x4:4x3\n"
      "4294967296x4:4x4\n"
      "--reset --dir=bwd_d ic4id8oc4kd3 ic4ih4oc4kh1n\"a=b\"\n",
      "a.list");
  EXPECT_THAT(
      shapes_of(list),
      ElementsAre("1 gemm/matmul/m=8,n=2,k=4/f32", "1 gemm/matmul/m=8,n=2,k=4/bf16", "1 gemm/matmul/m=8,n=3,k=4/f32",
                  "1 gemm/matmul/m=8,n=3,k=4/tf32",
                  "1 conv/conv2d_backward_data/n=2,h=4,w=4,c=4,k=4,r=1,s=1,stride=1,pad=0,dilation=1,groups=1/f32"));
  EXPECT_THAT(excepts_of(list), ElementsAre("2 calls taken without the bias", "2 calls taken without --attr-post-ops",
                                            "2 calls taken without --sum", "1 call left out: types s4, s4 -> s4",
                                            "1 call left out: sparse or grouped matrices",
                                            "1 call left out: tensors with explicit strides",
                                            "1 call left out: a problem of an unknown form",
                                            "1 call left out: a problem with an extent above 2^30",
                                            "1 call left out: a convolution in three dimensions"));
}

TEST(ShapeList, BenchdnnCompletesConvolutionsAsInItsManual) {
  const ShapeList list = parse_shape_list(
      "--dir=FWD_D,BWD_D,BWD_W --cfg=f32\n"
      "mb8_ic64ih56oc64oh56kh3ph1n\"square\"\n"  // width as height; stride 1
      "--dir=FWD_I --mb=4 g32mb1ic32ih28iw14oc32oh28ow14kh3kw3ph1pw1dh0\n"
      "--mb=0 ic16ih16oc16oh16kh3\n"  // two images; padding follows from the output
      "ic3ih224oc64oh112kh7sh2\n"     // (112 - 1) 2 + 7 - 224 = 5 rows of padding: 2 and 3
      "ic4ih8oc4kh3sh2sw1\n"
      "ic4id8ih8oc4kd3kh3\n",
      "a.list");
  const std::string square = "n=8,h=56,w=56,c=64,k=64,r=3,s=3,stride=1,pad=1,dilation=1,groups=1/f32";
  EXPECT_THAT(
      shapes_of(list),
      ElementsAre("1 conv/conv2d_forward/" + square, "1 conv/conv2d_backward_data/" + square,
                  "1 conv/conv2d_backward_filter/" + square,
                  "1 conv/conv2d_forward/n=4,h=28,w=14,c=32,k=32,r=3,s=3,stride=1,pad=1,dilation=1,groups=32/f32",
                  "1 conv/conv2d_forward/n=2,h=16,w=16,c=16,k=16,r=3,s=3,stride=1,pad=1,dilation=1,groups=1/f32"));
  EXPECT_THAT(
      excepts_of(list),
      ElementsAre("1 call left out: a convolution padded more on one side than on the other",
                  "1 call left out: a convolution whose strides, padding or dilation differ between height and width",
                  "1 call left out: a convolution in three dimensions"));
}

TEST(ShapeList, OnednnLogsOfVersions2And3CountEachExecution) {
  const std::string product =
      ",undef,src_f32::blocked:ab:f0 wei_f32::blocked:ba:f0 dst_f32::blocked:ab:f0,,,64x128:128x96,0.05\n";
  const ShapeList list = parse_shape_list(
      "loss 2.34\n"
      "onednn_verbose,info,oneDNN v2.6.3 (commit N/A)\n"
      "onednn_verbose,create:cache_miss,cpu,matmul,brg:avx512" +
          product + "onednn_verbose,exec,cpu,matmul,brg:avx512" + product +
          "dnnl_verbose,1795228459.5,exec,cpu,matmul,brg:avx512" + product +
          "onednn_verbose,primitive,exec,cpu,matmul,brg:avx512,undef,src_bf16::blocked:ab::f0 "
          "wei_bf16:a:blocked:BA16a64b2a::f0 "
          "bia_bf16::blocked:ab::f0_mask2 dst_bf16::blocked:ab::f0,attr-scratchpad:user "
          "attr-post-ops:eltwise_relu,,64x128:128x96,0.1\n"
          "onednn_verbose,v1,primitive,exec,cpu,matmul,brg:avx512,undef,src:f32::blocked:ba::f0 "
          "wei:f32::blocked:ab::f0 "
          "dst:f32::blocked:ab::f0,attr-fpmath:tf32,,64x128:128x96,0.1\n"
          "onednn_verbose,v1,primitive,exec,cpu,matmul,brg:avx512,undef,src:f32::blocked:ab:256x1:f0 "
          "wei:f32::blocked:ab::f0 "
          "dst:f32::blocked:ab::f0,,,64x128:128x96,0.1\n"
          "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv:avx512,backward_weights,src:f16::blocked:acdb::f0 "
          "wei:f16:ap:blocked:Acdb16a::f0 bia:undef::undef::: dst:f16::blocked:acdb::f0,,alg:convolution_direct,"
          "mb2_ic16oc16_ih7oh7kh5sh1dh0ph2_iw7ow7kw5sw1dw0pw2,0.2\n"
          "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:ab::f0 "
          "dst:f32::blocked:ba::f0,,,64x64,0.01\n"
          "onednn_verbose,exec,cpu,matmul,brg:avx512,undef,src_u8::blocked:ab:f0 wei_s8::blocked:ab:f0 "
          "dst_f32::blocked:ab:f0,,,8x8:8x8,1\n",
      "a.list");
  EXPECT_EQ(list.source.format, "ONEDNN_VERBOSE");
  EXPECT_THAT(
      shapes_of(list),
      ElementsAre(
          "2 gemm/linear_forward/m=64,n=96,k=128/f32", "1 gemm/matmul/m=64,n=96,k=128/bf16",
          "1 gemm/linear_backward_weight/m=128,n=64,k=96/tf32",
          "1 conv/conv2d_backward_filter/n=2,h=7,w=7,c=16,k=16,r=5,s=5,stride=1,pad=2,dilation=1,groups=1/f16"));
  EXPECT_THAT(excepts_of(list),
              ElementsAre("1 call taken without post-ops", "1 call taken without the bias",
                          "1 call left out: tensors with explicit strides", "1 call left out: primitive reorder",
                          "1 call left out: types u8, s8 -> f32"));
}

// Column-major c [m, n] = op(a) op(b) is row-major c^T [n, m] = op(b)^T op(a)^T: cuBLAS's TN is a linear layer's
// forward product, NT its weight's gradient.
TEST(ShapeList, CublasLogsAreTurnedFromColumnsToRows) {
  const auto call = [](const char* function, const char* a, const char* b, int lda, int ldb, const char* more) {
    return std::string("I! cuBLAS (v13.4) function cublasStatus_t ") + function + "(cublasHandle_t, int) called:\n" +
           "i!  transa: type=cublasOperation_t; val=" + a + "\ni!  transb: type=cublasOperation_t; val=" + b +
           "\ni!  m: type=int; val=96\ni!  n: type=int; val=64\ni!  k: type=int; val=128\ni!  lda: type=int; val=" +
           std::to_string(lda) + "\ni!  ldb: type=int; val=" + std::to_string(ldb) + "\ni!  ldc: type=int; val=96\n" +
           more +
           "i!Process=1; Thread=2; GPU=0; Handle=POINTER (IN HEX:0x1); StreamId=POINTER (IN HEX:0x(nil)); "
           "MathMode=CUBLAS_DEFAULT_MATH\n";
  };
  const char* bf16 =
      "i!  Atype: type=cudaDataType_t; val=CUDA_R_16BF(14)\ni!  Btype: type=cudaDataType_t; val=CUDA_R_16BF(14)\n"
      "i!  Ctype: type=cudaDataType_t; val=CUDA_R_16BF(14)\ni!  computeType: type=cublasComputeType_t; "
      "val=CUBLAS_COMPUTE_32F(68)\n";
  const ShapeList list =
      parse_shape_list("I! cuBLAS (v13.4) function cublasStatus_t cublasCreate_v2(cublasContext**) called:\n" +
                           call("cublasSgemm_v2", "CUBLAS_OP_T(1)", "CUBLAS_OP_N(0)", 128, 128, "") +
                           call("cublasSgemm_v2", "CUBLAS_OP_T(1)", "CUBLAS_OP_N(0)", 128, 128, "") +
                           call("cublasGemmEx", "CUBLAS_OP_N(0)", "CUBLAS_OP_N(0)", 96, 128, bf16) +
                           call("cublasGemmEx", "CUBLAS_OP_N(0)", "CUBLAS_OP_T(1)", 96, 64, bf16) +
                           call("cublasSgemm_v2", "CUBLAS_OP_N(0)", "CUBLAS_OP_N(0)", 288, 128, "") +
                           call("cublasSgemmBatched", "CUBLAS_OP_N(0)", "CUBLAS_OP_N(0)", 96, 128, "") +
                           call("cublasCgemm_v2", "CUBLAS_OP_N(0)", "CUBLAS_OP_N(0)", 96, 128, "") +
                           "I! cuBLAS (v13.4) function cublasStatus_t cublasSaxpy_v2(cublasHandle_t, int) called:\ni!  "
                           "n: type=int; val=4\n",
                       "a.list");
  EXPECT_EQ(list.source.format, "cuBLAS");
  // NT: dw [n, k] = dy [m, n]^T x [m, k] is c^T [64, 96] over 128 tokens.
  EXPECT_THAT(shapes_of(list),
              ElementsAre("2 gemm/linear_forward/m=64,n=96,k=128/f32", "1 gemm/matmul/m=64,n=96,k=128/bf16",
                          "1 gemm/linear_backward_weight/m=128,n=64,k=96/bf16"));
  EXPECT_THAT(
      excepts_of(list),
      ElementsAre("1 call left out: matrices with gaps (a leading dimension beyond the rows)",
                  "1 call left out: products of matrices given by pointer arrays (cublasSgemmBatched)",
                  "1 call left out: types another, another -> another", "1 call left out: function cublasSaxpy_v2"));
}

TEST(ShapeList, CublasltLogsCountTracedLaunches) {
  const auto line = [](const char* level, const std::string& type, const char* compute, const char* more) {
    return std::string("[2026-11-22 10:00:00][cublasLt][17][") + level +
           "][cublasLtSSSMatmul] A=0X7F Adesc=[type=" + type + " rows=128 cols=96 ld=128] B=0X7E Bdesc=[type=" + type +
           " rows=128 cols=64 ld=128] C=0X7D Cdesc=[type=" + type +
           " rows=96 cols=64 ld=96] D=0X7D Ddesc=[type=" + type +
           " rows=96 cols=64 ld=96] computeDesc=[computeType=" + compute + " scaleType=R_32F transa=OP_T" + more +
           "] algo=[algoId=21 tile=MATMUL_TILE_128x128] workSpace=0X0 beta=0 stream=0X0\n";
  };
  const ShapeList list = parse_shape_list(
      line("Api", "R_16BF", "COMPUTE_32F", "") + line("Trace", "R_16BF", "COMPUTE_32F", " epilogue=EPILOGUE_BIAS") +
          line("Trace", "R_32F", "COMPUTE_32F_FAST_TF32", "") + line("Trace", "R_16F", "COMPUTE_16F", "") +
          line("Trace", "R_8F_E4M3", "COMPUTE_32F", " aScaleMode=VEC32_UE8M0 bScaleMode=VEC32_UE8M0") +
          line("Trace", "R_4F_E2M1", "COMPUTE_32F", " aScaleMode=VEC16_UE4M3 bScaleMode=VEC16_UE4M3") +
          line("Trace", "R_8F_E4M3", "COMPUTE_32F", " aScaleMode=OUTER_VEC_32F bScaleMode=OUTER_VEC_32F") +
          line("Trace", "R_8F_E5M2", "COMPUTE_32F", " aScaleMode=VEC32_UE8M0 bScaleMode=VEC32_UE8M0"),
      "a.list");
  EXPECT_EQ(list.source.format, "cuBLASLt");
  EXPECT_THAT(shapes_of(list),
              ElementsAre("1 gemm/linear_forward/m=64,n=96,k=128/bf16", "1 gemm/linear_forward/m=64,n=96,k=128/tf32",
                          "1 gemm/block_scaled_matmul/m=64,n=96,k=128/mxfp8",
                          "1 gemm/block_scaled_matmul/m=64,n=96,k=128/nvfp4"));
  EXPECT_THAT(excepts_of(list),
              ElementsAre("1 call taken without epilogue EPILOGUE_BIAS", "1 call left out: sums in COMPUTE_16F",
                          "1 call left out: scales OUTER_VEC_32F",
                          "1 call left out: products with scales of blocks in other types or layouts"));
}

TEST(ShapeList, RocblasLogsAreCommandsOrYamlWithCounts) {
  const ShapeList list = parse_shape_list(
      "./rocblas-bench -f gemm -r f32_r --transposeA T --transposeB N -m 96 -n 64 -k 128 --alpha 1 --lda 128 --ldb 128 "
      "--beta 0 --ldc 96\n"
      "./rocblas-bench -f gemm_ex --transposeA N --transposeB N -m 96 -n 64 -k 128 --alpha -1 --a_type bf16_r --lda 96 "
      "--b_type bf16_r "
      "--ldb 128 --beta 1 --c_type bf16_r --ldc 96 --d_type bf16_r --ldd 96 --compute_type f32_r\n"
      "- { rocblas_function: \"rocblas_sgemm\", transA: 'T', transB: 'N', M: 96, N: 64, K: 128, alpha: 1.0, lda: 128, "
      "ldb: 128, beta: 0.0, "
      "ldc: 96, call_count: 7 }\n"
      "- { rocblas_function: \"rocblas_gemm_strided_batched_ex\", a_type: \"f16_r\", b_type: \"f16_r\", c_type: "
      "\"f16_r\", d_type: \"f16_r\", "
      "compute_type: \"f32_r\", transA: 'T', transB: 'N', M: 96, N: 64, K: 32, lda: 32, ldb: 32, beta: 0, ldc: 96, "
      "batch_count: 12, call_count: 2 }\n"
      "- { rocblas_function: \"rocblas_saxpy\", N: 5, call_count: 3 }\n",
      "a.list");
  EXPECT_EQ(list.source.format, "rocBLAS");
  EXPECT_THAT(shapes_of(list),
              ElementsAre("8 gemm/linear_forward/m=64,n=96,k=128/f32", "1 gemm/matmul/m=64,n=96,k=128/bf16",
                          "2 gemm/batched_matmul/b=12,m=64,n=96,k=32/f16"));
  EXPECT_THAT(excepts_of(list),
              ElementsAre("1 call taken without adding to the output (beta)", "3 calls left out: function saxpy"));
}

TEST(ShapeList, DeepBenchHeadersAndTablesSayNoPrecision) {
  const ShapeList header = parse_shape_list(
      "// m, n, k, a_t, b_t\n"
      "std::vector<std::tuple<int, int, int, bool, bool>> inference_server_set = {\n"
      "    std::make_tuple(5124, 700, 2048, false, false),\n};\n"
      "std::vector<std::tuple<int, int, int, bool, bool>> training_set = {\n"
      "    std::make_tuple(1760, 16, 1760, true, false), std::make_tuple(35, 8457, 2048, false, true),\n"
      "    //std::make_tuple(1, 1, 1, true, false),\n};\n",
      "a.list");
  EXPECT_EQ(header.source.format, "DeepBench");
  EXPECT_THAT(shapes_of(header), ElementsAre("1 gemm/linear_forward/m=16,n=1760,k=1760",
                                             "1 gemm/linear_backward_weight/m=2048,n=8457,k=35"));
  EXPECT_THAT(excepts_of(header), ElementsAre("1 call left out: a row of an inference list"));
  const ShapeList table = parse_shape_list(
      "w,h,c,n,k,filter_w,filter_h,pad_w,pad_h,stride_w,stride_h,precision,calls\n"
      "700,161,1,4,32,20,5,0,0,2,2,f32,3\n",
      "a.list");
  const std::string dims = "n=4,h=161,w=700,c=1,k=32,r=5,s=20,stride=2,pad=0,dilation=1,groups=1/f32";
  EXPECT_THAT(shapes_of(table), ElementsAre("3 conv/conv2d_forward/" + dims, "3 conv/conv2d_backward_data/" + dims,
                                            "3 conv/conv2d_backward_filter/" + dims));
}

TEST(ShapeList, OwnListsNameAnyWorkload) {
  const ShapeList list = parse_shape_list(
      R"({"shapes": [{"suite": "norm", "workload": "layer_norm_forward", "params": {"n": 768, "rows": 256}, "recipe": "f32", "calls": 2.5},
                     {"suite": "gemm", "workload": "matmul", "params": {"k": 3, "m": 1, "n": 2}}]})",
      "a.list");
  EXPECT_EQ(list.source.format, "gpubench");
  ASSERT_EQ(list.shapes.size(), 2);
  EXPECT_EQ(list.shapes[0].calls, 2.5);
  EXPECT_EQ(list.shapes[1].calls, 1.0);
  EXPECT_EQ(list.shapes[1].recipe, "");
}

TEST(ShapeList, MalformedTextIsRefusedWithItsLineAndTheExpectedOne) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "a.list: unknown format: the file is empty; expected one of JSON"},
      {"only this\n", "a.list: unknown format: the file begins with only this"},
      {"--reset\n64x128:127x96\n", "a.list:2: '64x128:127x96' is not a matrix product; expected MxK:KxN with one K"},
      {"--reset\n0x4:4x4\n", "a.list:2: an extent is '0', expected a whole number from 1 to 2^30"},
      {"--reset\nic4x:4x4\n4x4:4x4x\n", "a.list:3: an extent is '', expected a whole number from 1 to 2^30"},
      {"--dt=f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32\n",
       "a.list:1: --dt has more than 16 values"},
      {"./rocblas-bench -f gemm -m 3 -n 4294967296 -k 3\n", "a.list:1: n is '4294967296', expected at most 2^30"},
      {"ic16ih8oc16kh3kh3\n", "a.list:1: 'ic16ih8oc16kh3kh3' is not a convolution"},
      {"onednn_verbose,exec,cpu,matmul,brg\n", "a.list:1: the line ends early; expected exec,ENGINE"},
      {"onednn_verbose,exec,cpu,matmul,i,undef,src_f32::blocked:ab:f0,,,2x2:2x2,1\n",
       "a.list:1: 'src_f32::blocked:ab:f0' does not name src, wei and dst"},
      {"[cublasLt][1][Trace][cublasLtMatmul] Adesc=[type=R_32F rows=2]\n",
       "a.list:1: cuBLASLt's Ddesc without its argument rows"},
      {"I! cuBLAS (v13) function cublasStatus_t cublasSgemm_v2(int) called\n",
       "a.list:1: cublasSgemm_v2 without its argument m"},
      {"./rocblas-bench -f gemm -m 3 -n x -k 3\n", "a.list:1: n is 'x', expected a whole number"},
      {"./rocblas-bench -f gemm --transposeA Q -m 3 -n 3 -k 3\n", "a.list:1: transposeA is 'Q', expected N, T or C"},
      {"make_tuple(1, 2, 3)\n", "a.list:1: a row of 3 numbers, expected 5"},
      {"make_tuple(1, 2, 3, maybe, true)\n", "a.list:1: 'maybe' does not say whether"},
      {"m,n,k,a_t,b_t\n1,2,3,true\n", "a.list:2: 4 cells, expected 5 as in the header"},
      {"{\"shapes\": [{\"suite\": \"gemm\"}]}", "a.list:shapes[0]"},
      {"{\"shapes\": [], \"more\": 1}", "a.list:more: is not a member of a list of shapes"},
      {R"({"shapes": [{"suite": "gemm", "workload": "matmull", "params": {"m": 1, "n": 1, "k": 1}}]})",
       "a.list: unknown workload 'gemm/matmull'; did you mean 'gemm/matmul'?"},
      {R"({"shapes": [{"suite": "gemm", "workload": "matmul", "params": {"m": 1, "n": 1}}]})",
       "a.list: gemm/matmul does not have the dimensions m=1,n=1; expected those of m=512,n=512,k=512"},
      {R"({"shapes": [{"suite": "gemm", "workload": "matmul", "params": {"m": 1, "n": 1, "k": 0}}]})",
       "a.list: gemm/matmul has k=0, expected 1 or more"},
      {R"({"shapes": [{"suite": "gemm", "workload": "matmul", "params": {"m": 1, "n": 1, "k": 1}, "calls": 0}]})",
       "a.list:shapes[0]: is not allowed: expected calls above 0"},
  };
  for (const auto& [text, message] : wrong) EXPECT_THAT(error_of(text), ::testing::StartsWith(message)) << text;
}

TEST(ShapeList, MoreShapesThanARunTakesAreLeftOut) {
  std::string text;
  for (std::size_t i = 1; i <= max_listed_shapes + 2; ++i) text += std::to_string(i) + "x1:1x1\n";
  const ShapeList list = parse_shape_list(text + "1x1:1x1\n", "a.list");
  EXPECT_EQ(list.shapes.size(), max_listed_shapes);
  EXPECT_EQ(list.shapes.front().calls, 2.0);
  EXPECT_THAT(excepts_of(list), ElementsAre("2 calls left out: more than 10000 shapes, the limit of a run"));
}

TEST(ShapeList, OfCommentsAloneIsEmpty) {
  const ShapeList list = parse_shape_list("# a list\n\n# of nothing\n", "a.list");
  EXPECT_THAT(shapes_of(list), IsEmpty());
  EXPECT_THAT(excepts_of(list), IsEmpty());
}

// A filter larger than its padded image, and a number of elements above 2^56.
TEST(ListedSuites, ExtentsThatMakeNoProgramAreLeftOut) {
  ShapeList list = parse_shape_list("ic16ih2oc16kh7 1073741824x1073741824:1073741824x4 2x2:2x2\n", "a.list");
  (void)listed_suites(all_suites(), list, false);
  EXPECT_THAT(shapes_of(list), ElementsAre("1 gemm/matmul/m=2,n=2,k=2/f32"));
  EXPECT_THAT(excepts_of(list), ElementsAre("1 call taken without the bias",
                                            "1 call left out: conv/conv2d_forward of extents that make none",
                                            "1 call left out: gemm/matmul of extents that make none"));
}

TEST(ListedSuites, EqualShapesAreEqualCases) {
  ShapeList list = parse_shape_list("--dt=f32 512x512:512x512 512x512:512x512 3x4:4x5\n", "a.list");
  const std::vector<PlannedCase> planned = plan_cases(listed_suites(all_suites(), list, false), {});
  ASSERT_EQ(planned.size(), 2);
  Selection own;
  own.filters = {"^" + planned[0].id() + "$"};
  const std::vector<PlannedCase> suite = plan_cases(all_suites(), own);
  ASSERT_EQ(suite.size(), 1);
  EXPECT_EQ(planned[0].definition, suite[0].definition);
  EXPECT_EQ(planned[0].c.label, "square, 2 calls");
  EXPECT_EQ(planned[0].c.calls, 2.0);
  EXPECT_EQ(planned[1].id(), "gemm/matmul/m=3,n=5,k=4/f32/x1");
  EXPECT_EQ(planned[1].c.label, "1 call");
}

TEST(ListedSuites, APrecisionThatIsAskedForStandsInForTheLists) {
  const std::string list = "--dt=f32,f16 3x4:4x5\n";
  Selection on_a_cpu;
  on_a_cpu.default_precisions = {"f32", "bf16"};
  EXPECT_THAT(planned_ids(list, on_a_cpu),
              ElementsAre("gemm/matmul/m=3,n=5,k=4/f32/x1", "gemm/matmul/m=3,n=5,k=4/f16/x1"));
  Selection asked;
  asked.precisions = {"bf16"};
  EXPECT_THAT(planned_ids(list, asked), ElementsAre("gemm/matmul/m=3,n=5,k=4/bf16/x1"));
  // Without types in the list, the device's types are used.
  EXPECT_THAT(planned_ids("make_tuple(5, 3, 4, false, false)", on_a_cpu),
              ElementsAre("gemm/matmul/m=3,n=5,k=4/f32/x1", "gemm/matmul/m=3,n=5,k=4/bf16/x1"));
}

TEST(ListedSuites, ARecipeThatAWorkloadLacksIsNamed) {
  ShapeList list = parse_shape_list("--dt=f64 --wtag=ba 3x4:4x5\n", "a.list");
  EXPECT_THAT(plan_cases(listed_suites(all_suites(), list, false), {}), IsEmpty());
  EXPECT_THAT(excepts_of(list), ElementsAre("1 call left out: gemm/linear_forward is not available in f64"));
}

TEST(ListedSuites, ShapesThatAnAxisMakesEqualAreCountedTogether) {
  ShapeList list = parse_shape_list("--dt=f32 3x4:4x5 7x4:4x5 7x4:4x5\n", "a.list");
  Selection selection;
  selection.batches = {2};
  const std::vector<PlannedCase> planned = plan_cases(listed_suites(all_suites(), list, false), selection);
  ASSERT_EQ(planned.size(), 1);
  EXPECT_EQ(planned[0].c.calls, 3.0);
}

}  // namespace shape_list_test
}  // namespace gpubench
