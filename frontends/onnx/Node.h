//===- Node.h - One node of an ONNX graph, as its op sees it ----*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_NODE_H
#define TCC_FRONTENDS_ONNX_NODE_H

#include "frontends/Emitter.h"
#include "frontends/onnx/Tensor.h"
#include "onnx.pb.h"
#include "llvm/ADT/StringMap.h"

namespace tcc::onnx_import {

class GraphImporter;

/// Attributes by name, those of the enclosing function's call substituted.
using AttributeMap = llvm::StringMap<const onnx::AttributeProto *>;

/// Inputs, attributes and results of one node. What an op's function asks of a
/// model may be absent or malformed: every such answer fails the node, once.
class Node : public Emitter {
public:
  Node(GraphImporter &importer, const onnx::NodeProto &proto,
       AttributeMap attributes, int64_t version,
       llvm::ArrayRef<Tensor *> inputs, mlir::Location loc);

  llvm::StringRef getOpType() const { return proto.op_type(); }
  /// The version of the operator set that the op belongs to.
  int64_t getVersion() const { return version; }
  const onnx::NodeProto &getProto() const { return proto; }
  GraphImporter &getImporter() { return importer; }
  bool isMissingValue() const { return valueLeftOut; }

  // --- Inputs ----------------------------------------------------------------
  int64_t getNumInputs() const { return inputs.size(); }
  bool hasInput(int64_t i) const;
  /// Any form of an input; null after failing if it is absent.
  Tensor *tensor(int64_t i);
  /// An input as a value of the module.
  mlir::Value input(int64_t i);
  /// The inputs from `first` on.
  llvm::SmallVector<mlir::Value> inputsFrom(int64_t first);
  mlir::RankedTensorType type(int64_t i);
  mlir::Type elementType(int64_t i);
  using Emitter::elementType;
  graph::Extents shape(int64_t i);
  int64_t inputRank(int64_t i);
  /// The type that an input was decoded from; null if it is as it was.
  const NarrowType *narrowType(int64_t i);

  /// True for an input whose elements only a run knows.
  bool isComputed(int64_t i);
  /// The elements of an input that are known integers.
  std::optional<Content> knownContent(int64_t i);
  /// The same where the op cannot do without; fails the node.
  std::optional<Content> requireContent(int64_t i, llvm::StringRef what);
  std::optional<llvm::SmallVector<int64_t>> requireInts(int64_t i,
                                                        llvm::StringRef what);
  std::optional<llvm::SmallVector<double>> knownFloats(int64_t i);
  std::optional<llvm::SmallVector<double>> requireFloats(int64_t i,
                                                         llvm::StringRef what);
  /// The elements of a value of the module that depends on no input.
  std::optional<llvm::SmallVector<double>> knownNumbers(mlir::Value value);
  std::optional<double> knownNumber(mlir::Value scalar);
  /// An input of one integer; nullopt after failing.
  std::optional<SizeElement> sizeInput(int64_t i, llvm::StringRef what);
  /// A size whose value depends on no input as a known one.
  SizeElement settle(const SizeElement &element);
  /// A known one-element integer, or `fallback` if the input is absent.
  std::optional<int64_t> requireInt(int64_t i, llvm::StringRef what,
                                    int64_t fallback);

  // --- Attributes ------------------------------------------------------------
  const onnx::AttributeProto *findAttr(llvm::StringRef name) const;
  int64_t intAttr(llvm::StringRef name, int64_t fallback);
  double floatAttr(llvm::StringRef name, double fallback);
  std::string stringAttr(llvm::StringRef name, llvm::StringRef fallback);
  std::optional<llvm::SmallVector<int64_t>> intsAttr(llvm::StringRef name);
  std::optional<llvm::SmallVector<double>> floatsAttr(llvm::StringRef name);
  llvm::SmallVector<std::string> stringsAttr(llvm::StringRef name);
  /// An attribute before version `since`, from then on input `i`.
  std::optional<llvm::SmallVector<int64_t>>
  intsAttrOrInput(llvm::StringRef name, int64_t since, int64_t i);

  /// `axis` made non-negative; fails if it is out of [-rank, rank).
  int64_t axis(int64_t axis, int64_t rank);
  llvm::SmallVector<int64_t> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  /// The first result of another operator of ONNX's own domain, which has this
  /// node's attributes; its failure is this node's. Null where an operand is.
  mlir::Value apply(llvm::StringRef op, int64_t version,
                    llvm::ArrayRef<mlir::Value> operands);

  // --- Results ---------------------------------------------------------------
  int64_t getNumOutputs() const { return proto.output_size(); }
  bool hasOutput(int64_t i) const;
  void setResult(int64_t i, mlir::Value value);
  /// The name of a result, with the calls that lead to it.
  std::string getResultName(int64_t i = 0);
  /// The same of elements that stand for others.
  void setNarrow(int64_t i, mlir::Value stored, const NarrowType &narrow);
  void setContent(int64_t i, mlir::RankedTensorType type, Content content);
  void setTensor(int64_t i, Tensor *tensor);
  llvm::ArrayRef<Tensor *> getResults() const { return results; }

private:
  Tensor *makeTensor(mlir::Value value);

  GraphImporter &importer;
  const onnx::NodeProto &proto;
  AttributeMap attributes;
  int64_t version;
  llvm::SmallVector<Tensor *> inputs;
  llvm::SmallVector<Tensor *> results;
  bool valueLeftOut = false;
};

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_NODE_H
