#include "compiler/pipeline/WriteText.h"

#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using tcc::runtime::Code;

namespace tcc {

Phase getPhaseOf(Artifact artifact) {
  switch (artifact) {
  case Artifact::Package:
    return Phase::Package;
  case Artifact::Graph:
    return Phase::Simplify;
  case Artifact::Fused:
    return Phase::Fuse;
  case Artifact::Exec:
  case Artifact::Kernels:
  case Artifact::Assembly:
  case Artifact::Ptx:
    return Phase::Plan;
  }
  llvm_unreachable("not an artifact");
}

static FailureOr<std::string> print(ModuleOp module, Artifact artifact,
                                    CodeGenerator &generator) {
  if (artifact != Artifact::Graph && artifact != Artifact::Fused &&
      artifact != Artifact::Exec)
    return generator.print(artifact);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

std::optional<Refusal> writeText(ModuleOp module, const CompileOptions &options,
                                 CodeGenerator generator, Messages &messages) {
  FailureOr<std::string> text = print(module, options.artifact, generator);
  if (failed(text))
    return messages.takeRefusal(Code::Unsupported, module, "codegen");
  if (options.output == "-") {
    llvm::outs() << *text;
    llvm::outs().flush();
    return std::nullopt;
  }
  auto write = [&](llvm::raw_ostream &stream) {
    stream << *text;
    return llvm::Error::success();
  };
  if (llvm::Error error = llvm::writeToOutput(options.output, write))
    return makeRefusal(Code::Io, options.output + ": " +
                                     llvm::toString(std::move(error)));
  return std::nullopt;
}

} // namespace tcc
