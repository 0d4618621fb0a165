#include "compiler/pipeline/RunPasses.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace mlir;
using tcc::runtime::Code;

namespace tcc {

/// The model's name of the node at `loc`, or nothing.
static std::string getNodeName(Location loc) {
  std::string name;
  loc->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name;
}

Messages::Messages(MLIRContext *context, std::string modelPath)
    : path(std::move(modelPath)),
      handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
          notes.push_back(path + ": " + diagnostic.str());
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return success();
        std::string node = getNodeName(diagnostic.getLocation());
        std::string prefix = node.empty() ? "" : "node '" + node + "': ";
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
