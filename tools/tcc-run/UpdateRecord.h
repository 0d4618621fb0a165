//===- UpdateRecord.h - What logs say of an update --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_UPDATERECORD_H
#define TCC_TOOLS_TCCRUN_UPDATERECORD_H

#include "runtime/train/Session.h"
#include "tools/tcc-run/Pace.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace tcc::tools {

struct LoggedValue {
  const char *group; ///< of values that are looked at together
  const char *name;  ///< unique among all groups
  /// A number or a truth. A number that is not finite stays what it is.
  nlohmann::ordered_json value;
};

/// The one list of what is logged: each log writes all of it in its own way.
struct UpdateRecord {
  int64_t step = 0;
  std::vector<LoggedValue> values;
  /// The metrics of what came after the update, by name; null for none.
  nlohmann::ordered_json evaluation;
};

/// What `evaluation` is called beside the values, or as their group.
const char *nameOfEvaluation();

/// Says what an update did, and what the process has in memory after it.
UpdateRecord describeUpdate(const runtime::StepMetrics &metrics,
                            const Pace &pace,
                            nlohmann::ordered_json evaluation);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_UPDATERECORD_H
