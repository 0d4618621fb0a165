//===- Report.h - Findings as text and as JSON ------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_REPORT_H
#define TCC_TOOLS_TCCRUN_DOCTOR_REPORT_H

#include "tools/tcc-run/doctor/Check.h"

#include <nlohmann/json.hpp>

namespace tcc::tools::doctor {

/// An object for each check, in their order: name, state, found, recommended,
/// command and why; what there is not is empty.
nlohmann::ordered_json describe(const std::vector<Examination> &examined);

/// Problems and warnings first, with what to do; the others in a line each, but
/// for those that found the same, which share one. Closes with counts.
std::string print(const std::vector<Examination> &examined);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_REPORT_H
