//===- Command.cpp - Compares a package with its model --------------------===//
//
// Each kernel is compared by itself, on the inputs that it gets in the run: the
// first one that departs is wrong, whatever follows from it. If none is, the
// outputs are compared with those of the model as it was imported, so that what
// is left are the passes that made kernels of it.
//
//===----------------------------------------------------------------------===//
#include "tools/tcc-compare/Command.h"

#include "compiler/pipeline/Reference.h"
#include "runtime/package/SizeExpr.h"
#include "tools/cli/CommandLine.h"
#include "tools/tcc-run/Compare.h"
#include "tools/tcc-run/Flags.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Session.h"

#include <CLI/CLI.hpp>

#include <cstring>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

namespace {

struct CompareOptions {
  RunningOptions running;
  InputOptions inputs;
  Tolerance tolerance;
  std::string model;
  std::vector<std::string> plugins;
};

/// Ends the walk at the first launch that departs from the reference.
class KernelChecker : public LaunchObserver {
public:
  KernelChecker(const Reference &reference, Context &context,
                const Tolerance &tolerance)
      : reference(reference), context(context), tolerance(tolerance) {}

  Status before(const format::Launch &launch,
                std::span<void *const> buffers) override;
  Status after(const format::Launch &launch,
               std::span<void *const> buffers) override;

  size_t compared = 0;
  std::vector<std::string> skipped; ///< why the evaluator refused launches

private:
  std::string_view kernelOf(const format::Launch &launch) const {
    const auto &kernels = *context.executable().program().kernels();
    return kernels.Get(launch.kernel())->symbol()->string_view();
  }

  const Reference &reference;
  Context &context;
  Tolerance tolerance;
  std::vector<Tensor> expected; ///< of the launch that runs
};

} // namespace

/// "node 'a'", or "nodes 'a', 'b'".
static std::string describeNodes(const format::Launch &launch) {
  size_t count = launch.nodes() ? launch.nodes()->size() : 0;
  std::string text = count > 1 ? "nodes" : "node";
  for (size_t i = 0; i < count; ++i)
    text +=
        concat(i ? ", '" : " '", launch.nodes()->Get(i)->string_view(), "'");
  return text;
}

Status KernelChecker::before(const format::Launch &launch,
                             std::span<void *const> buffers) {
  expected.clear();
  size_t count = launch.sizes() ? launch.sizes()->size() : 0;
  std::vector<int64_t> sizes(count);
  for (size_t i = 0; i < count; ++i)
    if (!evaluate(*launch.sizes()->Get(i), context.walker().slots().data(),
                  sizes[i]))
      return makeError(Code::Usage, "kernel '", kernelOf(launch),
                       "': a size overflows");
  auto evaluated = reference.evaluateKernel(kernelOf(launch), buffers, sizes);
  if (evaluated.ok()) {
    expected = std::move(*evaluated);
    return Status();
  }
  Status status = evaluated.takeStatus();
  if (status.code() != Code::Unsupported)
    return status;
  skipped.push_back(concat(kernelOf(launch), ": ", status.message()));
  return Status();
}

Status KernelChecker::after(const format::Launch &launch,
                            std::span<void *const> buffers) {
  compared += !expected.empty();
  size_t first = buffers.size() - launch.fault() - expected.size();
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor &tensor = expected[i];
    Comparison comparison = compare(
        {buffers[first + i], tensor.dtype, tensor.shape}, tensor, tolerance);
    if (!comparison.ok)
      return makeError(Code::Mismatch, describeNodes(launch), ": kernel '",
                       kernelOf(launch),
                       "' departs from the reference: ", "result ", i, ": ",
                       comparison.problem);
  }
  return Status();
}

/// All inputs as the model takes them: given, fixed, or a state's zeros.
static Result<std::vector<Tensor>> listInputs(Session &session) {
  Context &context = *session.context;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < context.inputCount(); ++i) {
    const format::TensorSpec &spec = *context.entry().inputs()->Get(i);
    auto given = session.inputs.find(i);
    auto shape = given != session.inputs.end()
                     ? Result<std::vector<int64_t>>(given->second.shape)
                     : context.inputShape(i);
    if (!shape.ok())
      return shape.takeStatus();
    auto tensor = Tensor::allocate(spec.dtype(), std::move(*shape));
    if (!tensor.ok())
      return tensor.takeStatus();
    Memory &data = tensor->data;
    std::fill_n(data.data(), data.size(), std::byte(0));
    if (given != session.inputs.end())
      std::copy_n(given->second.data.data(), data.size(), data.data());
    else if (spec.fixed())
      std::memcpy(data.data(), spec.fixed()->data(), spec.fixed()->size());
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

/// Fails at the first output that departs.
static Status compareOutputs(const Reference &reference, Session &session,
                             std::span<const Tensor> inputs,
                             const Tolerance &tolerance) {
  Context &context = *session.context;
  auto expected = reference.evaluateModel(inputs, context.walker().slots());
  if (!expected.ok())
    return expected.takeStatus();
  for (size_t i = 0; i < expected->size(); ++i) {
    Comparison comparison =
        compare(context.output(i), (*expected)[i], tolerance);
    if (!comparison.ok)
      return makeError(Code::Mismatch, "output '",
                       context.entry().outputs()->Get(i)->name()->string_view(),
                       "' departs from the reference, though no kernel does: ",
                       comparison.problem);
  }
  return Status();
}

static Result<Memory> readRecord(const Package &package) {
  for (size_t i = 0; i < package.sections().size(); ++i)
    if (package.sections()[i].kind == format::SectionKind::Options)
      return package.readSection(i);
  return makeError(Code::BadData, "package '", package.path(),
                   "' does not say how it was compiled");
}

static void printSuccess(const CompareOptions &options,
                         const KernelChecker &checker, size_t outputs) {
  if (options.running.json)
    return printJson({{"schema_version", 1},
                      {"launches", checker.compared},
                      {"skipped", checker.skipped},
                      {"outputs", outputs}});
  if (options.running.quiet)
    return;
  for (const std::string &reason : checker.skipped)
    std::cerr << "tcc-run: not compared: " << reason << '\n';
  std::cout << checker.compared << " launches and " << outputs
            << " outputs agree with the reference\n";
}

static Status comparePackage(const CompareOptions &options) {
  Result<Session> session = openSession(options.running, options.inputs);
  if (!session.ok())
    return session.takeStatus();
  Context &context = *session->context;
  std::string_view device = context.executable().device().name();
  if (device.starts_with("cuda"))
    return makeError(Code::Unsupported, "kernels on '", device,
                     "' cannot be compared, those on 'emulated' can");
  Result<Memory> record = readRecord(context.executable().package());
  if (!record.ok())
    return record.takeStatus();
  auto reference = Reference::create(
      options.model,
      {reinterpret_cast<const char *>(record->data()), record->size()},
      options.plugins);
  if (!reference.ok())
    return reference.takeStatus();
  // A run changes the states and their shapes.
  Result<std::vector<Tensor>> inputs = listInputs(*session);
  if (!inputs.ok())
    return inputs.takeStatus();
  KernelChecker checker(**reference, context, options.tolerance);
  context.walker().setObserver(&checker);
  if (Status status = context.run(); !status.ok())
    return status;
  if (Status status =
          compareOutputs(**reference, *session, *inputs, options.tolerance);
      !status.ok())
    return status;
  printSuccess(options, checker, context.outputCount());
  return Status();
}

int tools::compareCommand(int argc, char **argv) {
  CLI::App app("Finds the first kernel of a package that departs from the "
               "compiler's reference evaluator",
               "tcc-run compare");
  CompareOptions options;
  addRunning(app, options.running);
  addInputs(app, options.inputs);
  addTolerance(app, options.tolerance);
  app.add_option("--model", options.model, "the model of the package (.onnx)")
      ->required();
  app.add_option("--plugin", options.plugins,
                 "a library that defines operators of the model")
      ->type_name("FILE")
      ->allow_extra_args(false);
  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  return report(comparePackage(options));
}
