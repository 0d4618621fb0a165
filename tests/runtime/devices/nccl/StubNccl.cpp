// An NCCL that is too old, by its name and version alone.

#define STUB(NAME)                                                             \
  extern "C" int NAME() { return 1; }

extern "C" int ncclGetVersion(int *version) {
  *version = 22703;
  return 0;
}
STUB(ncclGetUniqueId)
STUB(ncclCommInitRankConfig)
STUB(ncclCommFinalize)
STUB(ncclCommDestroy)
STUB(ncclCommAbort)
STUB(ncclCommGetAsyncError)
STUB(ncclGetErrorString)
STUB(ncclGetLastError)
STUB(ncclAllReduce)
STUB(ncclReduceScatter)
STUB(ncclAllGather)
STUB(ncclBroadcast)
