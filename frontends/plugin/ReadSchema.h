//===- ReadSchema.h - Signatures that plugins give --------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PLUGIN_READSCHEMA_H
#define TCC_FRONTENDS_PLUGIN_READSCHEMA_H

#include "frontends/plugin/Operator.h"

namespace tcc::plugin {

/// Reads `op.text`, a schema in the notation of torch.library, into `op`; the
/// reason if it is none, or has what operators of plugins cannot have.
std::optional<std::string> readSchema(Operator &op);

} // namespace tcc::plugin

#endif // TCC_FRONTENDS_PLUGIN_READSCHEMA_H
