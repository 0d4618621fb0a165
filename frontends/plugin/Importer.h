//===- Importer.h - One call of an operator of a plugin ---------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PLUGIN_IMPORTER_H
#define TCC_FRONTENDS_PLUGIN_IMPORTER_H

#include "frontends/plugin/Operator.h"
#include "frontends/torchscript/Interpreter.h"

namespace tcc::plugin {

/// Imports one call.
class Importer {
public:
  using Item = aten::Item;

  Importer(const Operator &op, aten::Tracer &tracer,
           const aten::Request &request, llvm::SmallVector<Item> arguments)
      : op(op), tracer(tracer), request(request),
        arguments(std::move(arguments)),
        interpreter(op.code, tracer, tracer.getProblems(), {}),
        emitter(tracer.getBuilder(), tracer.getLocation(request),
                tracer.getSizes()) {}

  std::optional<Item> run();

private:
  using Values = llvm::SmallVector<mlir::Value>;

  bool takeValues();
  std::optional<Item> evaluate(const torchscript::Node &function,
                               llvm::ArrayRef<Item> items) {
    return interpreter.call(function, items, request.node);
  }
  bool check();
  bool checkShapes(llvm::ArrayRef<Item> results);
  std::optional<llvm::SmallVector<Item>> runBody(llvm::ArrayRef<Item> items);
  std::optional<Values> fillBody(mlir::Block &block);
  std::optional<Values> standIn(mlir::Block &block);
  bool fillGradient(mlir::Block &block, const Values &results);
  mlir::Value takeGradient(const Item &item, mlir::Value input);
  std::optional<Item> makeOp();
  // Kernels, in Kernels.cpp.
  bool findKernels();
  std::string printTypes(const Kernel &kernel) const;
  bool hasTypes(const Kernel &kernel) const;
  std::optional<llvm::SmallVector<mlir::RankedTensorType>> getKernelTypes();
  std::optional<graph::Extents> evaluateShape(const Expression &shape);
  mlir::AffineMapAttr evaluateAll(llvm::ArrayRef<Expression> expressions,
                                  bool areCounts);
  mlir::Attribute describe(const Kernel &kernel);
  bool addKernels(mlir::OperationState &state);
  Item give(llvm::ArrayRef<Item> results);
  std::optional<Values> materialize(llvm::ArrayRef<Item> items);
  llvm::SmallVector<Item> substitute(mlir::ValueRange values);
  bool refuse(const llvm::Twine &message) {
    tracer.report(request, ProblemClass::badBytes, message.str());
    return false;
  }
  /// As the emitter failed.
  bool refuse() {
    tracer.report(request,
                  emitter.isUnsupported() ? ProblemClass::unsupported
                                          : ProblemClass::badBytes,
                  emitter.getMessage());
    return false;
  }

  const Operator &op;
  aten::Tracer &tracer;
  const aten::Request &request;
  llvm::SmallVector<Item> arguments;
  torchscript::Interpreter interpreter;
  Emitter emitter;
  Values inputs; // the arguments that are tensors
  /// The first of each target that takes the arguments' types.
  llvm::SmallVector<const Kernel *> kernels;
};

} // namespace tcc::plugin

#endif // TCC_FRONTENDS_PLUGIN_IMPORTER_H
