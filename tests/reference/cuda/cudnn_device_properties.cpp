// Writes cuDNN's description of a GPU as JSON: cudnn_device_properties FILE [DEVICE]. Tests without a GPU build plans
// for such descriptions; scripts/validate-gpu collects them from GPUs.
// Exit codes: 0 written, 1 cuDNN or the file failed, 2 usage.
#include <cudnn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

namespace {

void check(cudnnStatus_t status, const char* attempted) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char more[512] = "";
  cudnnGetLastErrorString(more, sizeof more);
  throw std::runtime_error(std::string(attempted) + ": " + cudnnGetErrorString(status) + " (" + more + ")");
}

std::string properties_of(std::int32_t device) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &descriptor), "making a description");
  check(cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &device),
        "choosing the device");
  check(cudnnBackendFinalize(descriptor), "reading the device");
  std::int64_t size = 0;
  check(cudnnBackendGetAttribute(descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &size,
                                 nullptr),
        "asking for the description's size");
  std::string text(static_cast<std::size_t>(size), '\0');
  check(cudnnBackendGetAttribute(descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, size, &size,
                                 text.data()),
        "asking for the description");
  check(cudnnBackendDestroyDescriptor(descriptor), "ending the description");
  text.resize(static_cast<std::size_t>(size));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "cudnn_device_properties: expected FILE [DEVICE]\n");
    return 2;
  }
  try {
    const std::string text = properties_of(argc == 3 ? std::atoi(argv[2]) : 0);
    std::ofstream file(argv[1]);
    file << text << "\n";
    if (!file.flush()) throw std::runtime_error(std::string("cannot write ") + argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cudnn_device_properties: %s\n", e.what());
    return 1;
  }
  return 0;
}
