//===- ReportSections.h - The sections of a compilation's page --*- C++ -*-===//
#ifndef TCC_TOOLS_TCC_REPORTSECTIONS_H
#define TCC_TOOLS_TCC_REPORTSECTIONS_H

#include "tcc/compiler.h"
#include "tools/report/Page.h"

namespace tcc::tools {

/// What the cost model says that launches wait for: predicted microseconds.
struct PredictedTime {
  double arithmetic = 0; ///< of kernels whose operations take longer
  double memory = 0;     ///< of kernels whose bytes take longer
  double start = 0;      ///< of starting kernels

  double getAll() const { return arithmetic + memory + start; }
};
PredictedTime predict(const std::vector<LaunchUse> &launches);

Section describeMemory(const CompileReport &report);
Section describeTime(const CompileReport &report);
Section describeFusion(const nlohmann::json &decisions);
Section describePrecision(const CompileReport &report,
                          const nlohmann::json &decisions);
Section listOtherDecisions(const nlohmann::json &decisions);
Section describeCompilation(const CompileReport &report);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCC_REPORTSECTIONS_H
