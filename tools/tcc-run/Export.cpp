#include "runtime/train/Checkpoint.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"

#include <iostream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static Status exportFrom(const ExportOptions &options) {
  auto session = openTraining(options.running, /*data=*/{},
                              /*communicator=*/nullptr);
  if (!session.ok())
    return session.takeStatus();
  Result<std::string> restored =
      restoreFrom(**session, options.checkpointDir, options.checkpoint,
                  options.running.quiet);
  if (!restored.ok())
    return restored.takeStatus();
  if (options.ema)
    if (Status status = (*session)->exchangeMeans(); !status.ok())
      return makeError(status.code(), "--ema: ", status.message());
  if (Status status = exportTo(options.exported, **session); !status.ok())
    return status;
  if (options.running.json)
    printJson({{"schema_version", 1},
               {"checkpoint", *restored},
               {"file", options.exported.file}});
  else if (!options.running.quiet)
    std::cout << concat("wrote ", options.exported.file, " from ", *restored,
                        "\n");
  return Status();
}

int tools::exportCommand(const ExportOptions &options) {
  return report(exportFrom(options));
}
