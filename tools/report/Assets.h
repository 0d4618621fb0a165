//===- Assets.h - The parts of the page, as files have them -----*- C++ -*-===//
#ifndef TCC_TOOLS_REPORT_ASSETS_H
#define TCC_TOOLS_REPORT_ASSETS_H

namespace tcc::tools {

/// HTML with @STYLE@, @DATA@ and @SCRIPT@ where these go.
extern const char kPageFrame[];
extern const char kPageStyle[];
extern const char kPageScript[];

} // namespace tcc::tools

#endif // TCC_TOOLS_REPORT_ASSETS_H
