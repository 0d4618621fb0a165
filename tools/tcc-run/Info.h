//===- Info.h - What a package holds, for people ----------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_INFO_H
#define TCC_TOOLS_TCCRUN_INFO_H

#include <nlohmann/json.hpp>
#include <string>

namespace tcc::runtime {
class Package;
}

namespace tcc::tools {

/// What `tcc-run info --json` prints.
nlohmann::ordered_json describePackage(const runtime::Package &package);

/// What `tcc-run info` says of the whole, in a few lines.
std::string summarize(const runtime::Package &package);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_INFO_H
