//===- ReportPage.h - What was compiled, as a page --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCC_REPORTPAGE_H
#define TCC_TOOLS_TCC_REPORTPAGE_H

#include "tcc/compiler.h"

namespace tcc::tools {

/// HTML without scripts: the figures, what low precision costs, and all
/// decisions.
std::string makeReportPage(const CompileOptions &options,
                           const CompileReport &report);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCC_REPORTPAGE_H
