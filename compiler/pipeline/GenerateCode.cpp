#include "compiler/pipeline/GenerateCode.h"

using namespace mlir;
using namespace tcc;

LogicalResult CodeGenerator::emit(CodeEmitter &emitter, GeneratedCode &code) {
  auto variants = emitter.emit(module, resources, code.notes);
  if (failed(variants))
    return failure();
  std::ranges::move(*variants, std::back_inserter(code.variants));
  return success();
}

/// Code that this machine can run: there is some, or it is made for that.
FailureOr<CodeVariant> CodeGenerator::chooseHost(GeneratedCode &code) {
  std::string error;
  std::optional<cpu::Cpu> host = cpu::getHostCpu(error);
  if (!host)
    return module.emitError("constants cannot be computed here: ") << error;
  auto runsHere = [&](const CodeVariant &variant) {
    return variant.target == getHostTarget().getName() &&
           llvm::all_of(variant.features, [&](const std::string &feature) {
             return host->hasFeature(feature);
           });
  };
  if (auto found = llvm::find_if(code.variants, runsHere);
      found != code.variants.end())
    return *found;
  auto emitter = getHostTarget().createEmitter(options, *host);
  if (!emitter)
    return module.emitError(llvm::toString(emitter.takeError()));
  auto variants = (*emitter)->emit(module, resources, code.notes);
  if (failed(variants))
    return failure();
  return std::move(variants->front());
}

FailureOr<GeneratedCode> CodeGenerator::generate(bool computesConstants) {
  GeneratedCode code;
  if (failed(emit(*machines.host, code)) ||
      (machines.device && failed(emit(*machines.device, code))))
    return failure();
  if (!computesConstants)
    return code;
  FailureOr<CodeVariant> host = chooseHost(code);
  if (failed(host))
    return failure();
  code.host = std::move(*host);
  return code;
}

FailureOr<std::string> CodeGenerator::print(Artifact artifact) {
  FailureOr<std::string> text =
      machines.host->print(module, resources, artifact);
  if (failed(text) || !machines.device)
    return text;
  FailureOr<std::string> more =
      machines.device->print(module, resources, artifact);
  if (failed(more))
    return failure();
  return *text + *more;
}
