// What cuDNN 9 looks for in a driver before it compiles a kernel. This one
// takes kernels, and can do nothing else: it is for plans that are never run.

static int anything; ///< what handles point to

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}
int cuLibraryLoadData(void **library) {
  *library = &anything;
  return 0;
}
int cuLibraryGetKernel(void **kernel) {
  *kernel = &anything;
  return 0;
}
int cuLibraryUnload(void *) { return 0; }

/// CUDA_ERROR_NOT_SUPPORTED
#define TCC_REFUSE(NAME)                                                       \
  int NAME() { return 801; }
TCC_REFUSE(cuCtxGetCurrent)
TCC_REFUSE(cuCtxGetDevice)
TCC_REFUSE(cuCtxGetLimit)
TCC_REFUSE(cuCtxPopCurrent)
TCC_REFUSE(cuCtxPushCurrent)
TCC_REFUSE(cuDeviceGet)
TCC_REFUSE(cuDeviceGetAttribute)
TCC_REFUSE(cuDevicePrimaryCtxRelease)
TCC_REFUSE(cuDevicePrimaryCtxReset)
TCC_REFUSE(cuDevicePrimaryCtxRetain)
TCC_REFUSE(cuDriverGetVersion)
TCC_REFUSE(cuFuncGetAttribute)
TCC_REFUSE(cuFuncSetAttribute)
TCC_REFUSE(cuGetErrorName)
TCC_REFUSE(cuGetErrorString)
TCC_REFUSE(cuGetExportTable)
TCC_REFUSE(cuKernelGetAttribute)
TCC_REFUSE(cuKernelSetAttribute)
TCC_REFUSE(cuLaunchCooperativeKernel)
TCC_REFUSE(cuLaunchKernel)
TCC_REFUSE(cuLaunchKernelEx)
TCC_REFUSE(cuLibraryLoadFromFile)
TCC_REFUSE(cuLinkAddData)
TCC_REFUSE(cuLinkAddData_v2)
TCC_REFUSE(cuLinkAddFile_v2)
TCC_REFUSE(cuLinkComplete)
TCC_REFUSE(cuLinkCreate)
TCC_REFUSE(cuLinkCreate_v2)
TCC_REFUSE(cuLinkDestroy)
TCC_REFUSE(cuMemcpyDtoH_v2)
TCC_REFUSE(cuModuleGetFunction)
TCC_REFUSE(cuModuleGetGlobal_v2)
TCC_REFUSE(cuModuleLoadData)
TCC_REFUSE(cuModuleLoadDataEx)
TCC_REFUSE(cuModuleLoadFatBinary)
TCC_REFUSE(cuModuleUnload)
TCC_REFUSE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
TCC_REFUSE(cuOccupancyMaxPotentialClusterSize)
TCC_REFUSE(cuStreamGetCtx)
TCC_REFUSE(cuStreamSynchronize)
TCC_REFUSE(cuTensorMapEncodeTiled)
}
