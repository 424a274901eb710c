// rms_norm_forward as a CUDA kernel, one block per row; f32 and bf16. Needs only nvcc and gpubench's header:
// nvcc -O3 -shared -Xcompiler -fPIC -I<folder of gpubench/> rms_norm_forward.cu -o librms_norm.so
// Not yet run on a GPU.
#include <cuda_bf16.h>

#include <cstdio>
#include <cstring>

#include "gpubench/implementation.h"

namespace {

constexpr int threads = 256;
constexpr int warp = 32;

__device__ float loaded(float value) { return value; }
__device__ float loaded(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void stored(float* to, float value) { *to = value; }
__device__ void stored(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }

template <class T, class Gamma>
__global__ void rms_norm(const T* x, const Gamma* gamma, T* y, float* rstd, int64_t n, float epsilon) {
  const T* row = x + blockIdx.x * n;
  float squares = 0.0F;
  for (int64_t i = threadIdx.x; i < n; i += threads) squares += loaded(row[i]) * loaded(row[i]);
  for (int distance = warp / 2; distance > 0; distance /= 2) squares += __shfl_xor_sync(0xffffffffU, squares, distance);
  __shared__ float of_warp[threads / warp];
  if (threadIdx.x % warp == 0) of_warp[threadIdx.x / warp] = squares;
  __syncthreads();
  float sum = 0.0F;
  for (const float part : of_warp) sum += part;
  const float scale = 1.0F / sqrtf(sum / static_cast<float>(n) + epsilon);
  for (int64_t i = threadIdx.x; i < n; i += threads)
    stored(y + blockIdx.x * n + i, loaded(gamma[i]) * loaded(row[i]) * scale);
  if (threadIdx.x == 0) rstd[blockIdx.x] = scale;
}

const gpubench_tensor* operand(const gpubench_call* call, const char* name) {
  for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
    if (std::strcmp(call->tensors[i].operand, name) == 0) return &call->tensors[i];
  }
  return nullptr;
}

const gpubench_attribute* attribute(const gpubench_call* call, const char* name) {
  for (size_t i = 0; i < call->attribute_count; ++i) {
    if (std::strcmp(call->attributes[i].name, name) == 0) return &call->attributes[i];
  }
  return nullptr;
}

bool is(const gpubench_tensor* t, const char* type) { return std::strcmp(t->type, type) == 0; }

bool dense(const gpubench_tensor& t) {
  int64_t expected = 1;
  for (int32_t axis = t.dl.ndim; axis-- > 0; expected *= t.dl.shape[axis]) {
    if (t.dl.strides[axis] != expected) return false;
  }
  return true;
}

gpubench_status offers(const gpubench_call* call, char* text, size_t size) {
  const char* why = nullptr;
  if (std::strcmp(call->op, "rms_norm_forward") != 0) {
    why = "only rms_norm_forward";
  } else if (operand(call, "x")->dl.device.device_type != 2) {
    why = "only on a CUDA device";
  } else if (attribute(call, "rounds_before_gamma")->whole != 0) {
    why = "the row is not rounded before gamma";
  } else {
    const gpubench_tensor* x = operand(call, "x");
    if (!is(x, "f32") && !is(x, "bf16")) why = "only f32 and bf16";
    if (!is(operand(call, "gamma"), x->type) || !is(operand(call, "rstd"), "f32")) why = "gamma in another type";
    for (size_t i = 0; i < call->input_count + call->output_count; ++i) {
      if (!dense(call->tensors[i])) why = "only dense tensors";
    }
  }
  if (why == nullptr) return GPUBENCH_OK;
  std::snprintf(text, size, "%s", why);
  return GPUBENCH_DECLINED;
}

template <class T>
void launch(const gpubench_call* call, cudaStream_t stream) {
  const DLTensor& x = operand(call, "x")->dl;
  const int64_t n = x.shape[x.ndim - 1];
  int64_t rows = 1;
  for (int32_t axis = 0; axis + 1 < x.ndim; ++axis) rows *= x.shape[axis];
  rms_norm<<<static_cast<unsigned>(rows), threads, 0, stream>>>(
      static_cast<const T*>(x.data), static_cast<const T*>(operand(call, "gamma")->dl.data),
      static_cast<T*>(operand(call, "y")->dl.data), static_cast<float*>(operand(call, "rstd")->dl.data), n,
      static_cast<float>(attribute(call, "epsilon")->real));
}

gpubench_status run(void*, const gpubench_call* call, void*, void* stream, char* text, size_t size) {
  const auto on = static_cast<cudaStream_t>(stream);
  is(operand(call, "x"), "bf16") ? launch<__nv_bfloat16>(call, on) : launch<float>(call, on);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return GPUBENCH_OK;
  std::snprintf(text, size, "%s", cudaGetErrorString(error));
  return GPUBENCH_FAILED;
}

}  // namespace

extern "C" const gpubench_implementation* gpubench_entry(uint32_t, char*, size_t) {
  static const gpubench_implementation table{
      GPUBENCH_ABI_VERSION, sizeof(gpubench_implementation), "1.0", offers, nullptr, run, nullptr};
  return &table;
}
