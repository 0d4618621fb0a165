//===- FindRate.h - The range test of learning rates ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_FINDRATE_H
#define TCC_TOOLS_TCCRUN_FINDRATE_H

#include "tools/tcc-run/Options.h"
#include "tools/tcc-run/Updates.h"

namespace tcc::tools {

/// Makes updates at rates from one that changes nothing to one that is too
/// large for any model; the first rank prints and draws what the losses say.
runtime::Status findRate(runtime::TrainingSession &session, Updates &updates,
                         const TrainOptions &options);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_FINDRATE_H
