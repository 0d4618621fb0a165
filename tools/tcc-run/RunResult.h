//===- RunResult.h - How a run ended, beside its log ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_RUNRESULT_H
#define TCC_TOOLS_TCCRUN_RUNRESULT_H

#include "runtime/base/Status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tcc::tools {

/// FOLDER/result.json, whole or not at all: there is none while a run is under
/// way, nor after it was killed.
runtime::Status writeRunResult(const std::string &folder,
                               const nlohmann::ordered_json &result);
/// Removes the one of an earlier process, if there is one.
void removeRunResult(const std::string &folder);
/// Null where there is none; Code::BadData where it is no object.
runtime::Result<nlohmann::ordered_json>
readRunResult(const std::string &folder);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_RUNRESULT_H
