// A fake libcuda.so.1 with two devices, of compute capability 8.0 and 9.0. The call named by GPUBENCH_FAKE_HANG never
// returns.
#include "tests/fakes/cuda/hang.h"

extern "C" {

int cuInit(unsigned) { return gpubench::hang_in("cuInit"), 0; }
int cuDriverGetVersion(int* version) { return gpubench::hang_in("cuDriverGetVersion"), *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return gpubench::hang_in("cuDeviceGetCount"), *count = 2, 0; }
int cuDeviceGet(int* device, int ordinal) {
  gpubench::hang_in("cuDeviceGet");
  *device = 70 + ordinal;  // a handle differs from the ordinal
  return ordinal < 2 ? 0 : 101;
}
// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR is 75, _MINOR 76.
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  gpubench::hang_in("cuDeviceGetAttribute");
  if (attribute != 75 && attribute != 76) return 1;
  *value = attribute == 76 ? 0 : device == 70 ? 8 : 9;
  return device == 70 || device == 71 ? 0 : 101;
}
}
