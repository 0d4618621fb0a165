//===- Plugin.h - Libraries of the runtime opened when needed ---*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_PLUGIN_H
#define TCC_RUNTIME_BASE_PLUGIN_H

#include "runtime/base/Status.h"

namespace tcc::runtime {

/// What `library` exports as `symbol`. It is looked for in the folder that the
/// environment's TCC_PLUGINS names, beside the runtime, and where libraries are
/// looked for. It is never closed.
Result<void *> findInPlugin(const char *library, const char *symbol);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_PLUGIN_H
