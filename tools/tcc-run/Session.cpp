#include "tools/tcc-run/Session.h"

#include "runtime/executor/Variants.h"
#include "tools/tcc-run/Inputs.h"
#include "tools/tcc-run/Symbols.h"

#include <algorithm>
#include <iostream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using format::EntryKind;

static void printMessage(void *, int, const char *message) {
  std::cerr << concat("tcc-run: ", message, "\n");
}

int tools::report(const Status &status) {
  if (!status.ok())
    std::cerr << concat("tcc-run: error: ", status.message(), "\n");
  return static_cast<int>(status.code());
}

Result<std::shared_ptr<const Executable>>
tools::loadExecutable(const RunningOptions &running) {
  auto package = Package::open(running.package);
  if (!package.ok())
    return package.takeStatus();
  ExecutableOptions loaded;
  loaded.device = running.device;
  loaded.localRank = running.localRank;
  loaded.weightsFile = running.weights;
  loaded.tuneCache = running.tuneCache;
  loaded.threads = running.threads > 0 ? running.threads : defaultThreadCount();
  if (running.verbose)
    loaded.log = {nullptr, printMessage};
  auto executable = Executable::load(std::move(*package), loaded);
  if (!executable.ok())
    return executable.takeStatus();
  if (running.symbols) {
    Result<std::string> command = writeSymbols(**executable);
    if (!command.ok())
      return command.takeStatus();
    std::cerr << *command << '\n';
  }
  return std::move(*executable);
}

Result<Session> tools::openSession(const RunningOptions &running,
                                   const InputOptions &inputs) {
  auto executable = loadExecutable(running);
  if (!executable.ok())
    return executable.takeStatus();
  return openSession(std::move(*executable), running.threads, inputs);
}

/// The first variant that takes the inputs which are given, or the first one.
static uint16_t chooseVariant(std::span<const format::Entry *const> variants,
                              const std::map<size_t, runtime::Tensor> &inputs) {
  for (const format::Entry *entry : variants)
    if (std::ranges::all_of(inputs, [&](const auto &input) {
          auto index = uint32_t(input.first);
          return takes(*entry->inputs()->Get(index), input.second.shape);
        }))
      return entry->variant();
  return 0;
}

Result<Session> tools::openSession(std::shared_ptr<const Executable> executable,
                                   int threads, const InputOptions &inputs) {
  ContextOptions created;
  created.threads = threads;
  std::unique_ptr<runtime::TrainingSession> training;
  if (!executable->findEntry(created.entry) &&
      executable->findEntry(EntryKind::predict)) {
    auto begun = runtime::TrainingSession::create(executable, {.threads = 1});
    if (!begun.ok())
      return begun.takeStatus();
    training = std::move(*begun);
    created.entry = EntryKind::predict;
    created.variables = &training->variables();
  }
  created.variant = inputs.variant.value_or(0);
  auto context = Context::create(executable, created);
  if (!context.ok())
    return context.takeStatus();
  Session session{std::move(training), std::move(*context), {}};
  if (Status status = readInputs(inputs, session); !status.ok())
    return status;
  auto variants = listVariants(executable->program(), created.entry);
  created.variant =
      inputs.variant.value_or(chooseVariant(variants, session.inputs));
  if (created.variant != session.context->entry().variant()) {
    auto other = Context::create(executable, created);
    if (!other.ok())
      return other.takeStatus();
    session.context = std::move(*other);
  }
  if (Status status = bindInputs(inputs, session); !status.ok())
    return status;
  return session;
}
