//===- ReportPage.h - What was compiled, as a page --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCC_REPORTPAGE_H
#define TCC_TOOLS_TCC_REPORTPAGE_H

#include "tcc/compiler.h"

namespace tcc::tools {

/// HTML that needs nothing else: what the program is, whether it fits, what
/// limits it, and all that was decided.
std::string makeReportPage(const CompileOptions &options,
                           const CompileReport &report);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCC_REPORTPAGE_H
