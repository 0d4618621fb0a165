#include "runtime/devices/libraries/Cudnn.h"

#include "runtime/devices/libraries/Toolkit.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr const char *kNames[] = {"libcudnn.so.9"};

static Status load(Cudnn &table, const char *places) {
  const EntryPoint entries[] = {
      {"cudnnCreate", &table.create},
      {"cudnnDestroy", &table.destroy},
      {"cudnnSetStream", &table.setStream},
      {"cudnnGetVersion", &table.getVersion},
      {"cudnnGetErrorString", &table.getErrorString},
      {"cudnnBackendCreateDescriptor", &table.createDescriptor},
      {"cudnnBackendDestroyDescriptor", &table.destroyDescriptor},
      {"cudnnBackendSetAttribute", &table.setAttribute},
      {"cudnnBackendGetAttribute", &table.getAttribute},
      {"cudnnBackendFinalize", &table.finalize},
      {"cudnnBackendExecute", &table.execute},
  };
  return loadLibrary(kNames, places, entries);
}

Result<const Cudnn *> cuda::findCudnn(const char *places) {
  return getTable(load, places);
}
