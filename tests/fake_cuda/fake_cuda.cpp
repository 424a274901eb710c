// A library in the place of the driver's libcuda.so.1 that shows two devices, of compute capability 8.0 and 9.0.
extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = 2, 0; }
int cuDeviceGet(int* device, int ordinal) {
  *device = 70 + ordinal;  // a handle, which need not be the ordinal
  return ordinal < 2 ? 0 : 101;
}
// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR is 75, _MINOR 76.
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (attribute != 75 && attribute != 76) return 1;
  *value = attribute == 76 ? 0 : device == 70 ? 8 : 9;
  return device == 70 || device == 71 ? 0 : 101;
}
}
