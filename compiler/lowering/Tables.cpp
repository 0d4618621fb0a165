//===- Tables.cpp - Constants and kernels ---------------------------------===//
#include "compiler/lowering/EntryLowering.h"
#include "dialects/graph/NodeNames.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tcc::lowering {

ProgramTables::ProgramTables(ModuleOp module)
    : builder(OpBuilder::atBlockBegin(module.getBody())) {}

int64_t ProgramTables::addConstant(StringRef name, Type type,
                                   ElementsAttr value) {
  builder.create<exec::ConstantOp>(builder.getUnknownLoc(),
                                   builder.getStringAttr(name),
                                   TypeAttr::get(type), value);
  return constantCount++;
}

int64_t ProgramTables::getConstant(ElementsAttr value) {
  auto [entry, isNew] = constantsByValue.try_emplace(value, constantCount);
  if (isNew)
    addConstant(("constant." + Twine(constantCount)).str(), value.getType(),
                value);
  return entry->second;
}

int64_t ProgramTables::getConstant(StringRef name, Type type) {
  auto [entry, isNew] = constantsByName.try_emplace(name, constantCount);
  if (isNew)
    addConstant(name, type, nullptr);
  return entry->second;
}

/// `name` with what symbols of object files may hold.
static std::string makeSymbol(StringRef name) {
  constexpr size_t kLongest = 40;
  std::string symbol;
  for (char c : name.take_back(kLongest))
    symbol += llvm::isAlnum(c) ? c : '_';
  return symbol;
}

exec::KernelOp ProgramTables::createKernel(graph::FusedOp fused,
                                           const Target &target) {
  std::string name =
      ("k" + Twine(kernelCount++) + "_").str() + makeSymbol(getNodeName(fused));
  auto kernel = builder.create<exec::KernelOp>(
      fused.getLoc(), name, /*target=*/StringAttr(), /*threads=*/IntegerAttr(),
      exec::LibraryWorkAttr(), exec::FinishedCodeAttr(),
      /*candidates=*/ArrayAttr(),
      /*symbols=*/ArrayAttr());
  setTarget(kernel, target);
  Block &body = kernel.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value input : fused.getInputs())
    mapping.map(input, body.addArgument(input.getType(), fused.getLoc()));
  // An input that is used twice is two arguments.
  auto copy = cast<graph::FusedOp>(fused->clone(mapping));
  copy->setOperands(body.getArguments());
  body.push_back(copy);
  return kernel;
}

} // namespace tcc::lowering
