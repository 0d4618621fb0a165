#include "compiler/pipeline/RunPasses.h"

#include "dialects/graph/NodeNames.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;
using tcc::runtime::Code;

namespace tcc {

Messages::Messages(MLIRContext *context, std::string modelPath)
    : path(std::move(modelPath)),
      handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
          notes.push_back(path + ": " + diagnostic.str());
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return success();
        StringRef node = getOrigin(diagnostic.getLocation()).name;
        std::string prefix =
            node.empty() ? "" : ("node '" + node + "': ").str();
        problems.push_back(path + ": " + prefix + diagnostic.str());
        return success();
      }) {}

Refusal Messages::takeRefusal(Code code, ModuleOp module, StringRef step) {
  Refusal refusal;
  refusal.code = problems.empty() ? Code::Internal : code;
  refusal.problems = std::move(problems);
  if (refusal.problems.empty())
    refusal.problems.push_back(path + ": internal error in " + step.str());
  if (refusal.code == Code::Internal)
    llvm::raw_string_ostream(refusal.reproducer) << module;
  return refusal;
}

namespace {

/// Remembers which pass failed, as a pass may fail without a word.
struct FailedPass : PassInstrumentation {
  explicit FailedPass(std::string &name) : name(name) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getName().str();
  }
  std::string &name;
};

} // namespace

std::optional<Refusal>
runPasses(ModuleOp module, llvm::function_ref<void(OpPassManager &)> addPasses,
          Code code, Messages &messages) {
  PassManager pm(module.getContext());
  std::string failed;
  pm.addInstrumentation(std::make_unique<FailedPass>(failed));
  addPasses(pm);
  if (succeeded(pm.run(module)))
    return std::nullopt;
  return messages.takeRefusal(code, module, failed);
}

} // namespace tcc
