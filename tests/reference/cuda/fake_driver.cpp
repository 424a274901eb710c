// A libcuda.so.1 that drives nothing, for tests that build cuDNN's plans on a machine without a GPU.
//
// cuDNN needs no device to choose an engine for a chip that is described to it, but code that it compiles at run time
// is loaded as a module when a plan is finalized, and loading is the driver's work. Here every call succeeds and does
// nothing, but for those that say that there is no device: a plan can be finalized, and a program that tried to run one
// would compute nothing. Only tests that name this library in their environment ever load it.
#include <dlfcn.h>

extern "C" {

// What a test looks for to know that this is the library that it got.
extern const int gpubench_fake_driver = 1;

// CUresult, as the driver's interface numbers it.
enum Result { success = 0, stub_library = 34, not_found = 500 };

static int succeed() { return success; }
static int give_handle(void** handle) {
  static int something;
  *handle = &something;
  return success;
}

// There is no device, and no table of private functions.
int cuInit(unsigned) { return stub_library; }
int cuGetExportTable(const void**, const void*) { return not_found; }

int cuDriverGetVersion(int* version) { return *version = 13000, success; }
int cuDeviceGet(int* device, int) { return *device = 0, success; }
int cuDeviceGetCount(int* count) { return *count = 1, success; }
int cuGetErrorName(int, const char** name) { return *name = "FAKE_DRIVER", success; }
int cuGetErrorString(int, const char** text) { return *text = "this driver drives nothing", success; }

// What gives out a handle as its first argument; the others don't matter.
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

// What cuDNN 9 looks up by its name, and needs to succeed.
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

// How the runtime asks for everything else.
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
