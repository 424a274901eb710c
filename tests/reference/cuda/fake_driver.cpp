// A libcuda.so.1 without a device, for tests that build cuDNN's plans on a machine without a GPU.
//
// cuDNN needs no device to choose an engine for a described chip, but finalizing a plan loads code compiled at run time
// as a module, which is the driver's task. Here every call succeeds without effect, except those that report that there
// is no device. Only tests that name this library in their environment load it.
#include <dlfcn.h>

extern "C" {

// Tests look for this symbol to recognize the library.
extern const int gpubench_fake_driver = 1;

// CUresult values of the driver interface.
enum Result { success = 0, stub_library = 34, not_found = 500 };

static int succeed() { return success; }
static int give_handle(void** handle) {
  static int something;
  *handle = &something;
  return success;
}

// No device, and no table of private functions.
int cuInit(unsigned) { return stub_library; }
int cuGetExportTable(const void**, const void*) { return not_found; }

int cuDriverGetVersion(int* version) { return *version = 13000, success; }
int cuDeviceGet(int* device, int) { return *device = 0, success; }
int cuDeviceGetCount(int* count) { return *count = 1, success; }
int cuGetErrorName(int, const char** name) { return *name = "FAKE_DRIVER", success; }
int cuGetErrorString(int, const char** text) { return *text = "this driver drives nothing", success; }

// Functions that return a handle in their first argument; the others are ignored.
int cuCtxGetCurrent(void** context) { return give_handle(context); }
int cuDevicePrimaryCtxRetain(void** context) { return give_handle(context); }
int cuKernelGetFunction(void** function) { return give_handle(function); }
int cuLibraryGetKernel(void** kernel) { return give_handle(kernel); }
int cuLibraryGetModule(void** module) { return give_handle(module); }
int cuLibraryLoadData(void** library) { return give_handle(library); }
int cuLibraryLoadFromFile(void** library) { return give_handle(library); }
int cuModuleGetFunction(void** function) { return give_handle(function); }
int cuModuleLoadData(void** module) { return give_handle(module); }
int cuModuleLoadDataEx(void** module) { return give_handle(module); }
int cuModuleLoadFatBinary(void** module) { return give_handle(module); }

// Looked up by name in cuDNN 9, which needs them to succeed.
int cuCtxGetDevice() { return succeed(); }
int cuCtxGetLimit() { return succeed(); }
int cuCtxPopCurrent() { return succeed(); }
int cuCtxPushCurrent() { return succeed(); }
int cuDeviceGetAttribute() { return succeed(); }
int cuDevicePrimaryCtxRelease() { return succeed(); }
int cuDevicePrimaryCtxReset() { return succeed(); }
int cuFuncGetAttribute() { return succeed(); }
int cuFuncSetAttribute() { return succeed(); }
int cuKernelGetAttribute() { return succeed(); }
int cuKernelSetAttribute() { return succeed(); }
int cuLaunchCooperativeKernel() { return succeed(); }
int cuLaunchKernel() { return succeed(); }
int cuLaunchKernelEx() { return succeed(); }
int cuLibraryUnload() { return succeed(); }
int cuLinkAddData() { return succeed(); }
int cuLinkAddData_v2() { return succeed(); }
int cuLinkAddFile_v2() { return succeed(); }
int cuLinkComplete() { return succeed(); }
int cuLinkCreate() { return succeed(); }
int cuLinkCreate_v2() { return succeed(); }
int cuLinkDestroy() { return succeed(); }
int cuMemcpyDtoH_v2() { return succeed(); }
int cuModuleGetGlobal_v2() { return succeed(); }
int cuModuleUnload() { return succeed(); }
int cuOccupancyMaxActiveBlocksPerMultiprocessor() { return succeed(); }
int cuOccupancyMaxPotentialClusterSize() { return succeed(); }
int cuStreamGetCtx() { return succeed(); }
int cuStreamSynchronize() { return succeed(); }
int cuTensorMapEncodeTiled() { return succeed(); }

// The runtime looks up all other functions through this one.
int cuGetProcAddress_v2(const char* name, void** found, int, unsigned long, int* status) {
  void* self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  *found = self == nullptr ? nullptr : dlsym(self, name);
  if (*found == nullptr) *found = reinterpret_cast<void*>(&succeed);
  if (status != nullptr) *status = success;
  return success;
}
int cuGetProcAddress(const char* name, void** found, int version, unsigned long flags) {
  return cuGetProcAddress_v2(name, found, version, flags, nullptr);
}

}  // extern "C"
