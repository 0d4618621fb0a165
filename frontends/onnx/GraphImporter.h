//===- GraphImporter.h - ONNX graphs to graph ops ---------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_GRAPHIMPORTER_H
#define TCC_FRONTENDS_ONNX_GRAPHIMPORTER_H

#include "frontends/Frontend.h"
#include "frontends/KnownValues.h"
#include "frontends/aten/Tracer.h"
#include "frontends/onnx/Literals.h"
#include "frontends/onnx/Node.h"
#include "frontends/plugin/Operator.h"

namespace tcc::onnx_import {

/// The names that a graph can see.
struct Scope {
  const Scope *parent = nullptr;
  llvm::StringMap<Tensor *> tensors;
  /// Attributes of the call, inside a model-local function.
  const AttributeMap *callAttributes = nullptr;
  /// Operator set versions, by domain.
  const llvm::StringMap<int64_t> *versions = nullptr;
  /// Prefix of node names: the calls that lead here.
  std::string path;

  Tensor *find(llvm::StringRef name) const;
  /// True for a function's input that the call does not give.
  bool isAbsent(llvm::StringRef name) const;
};

/// Imports nodes into the function under construction.
class GraphImporter {
public:
  GraphImporter(mlir::OpBuilder &builder, Sizes &sizes, WeightStore &weights,
                LiteralReader &reader, const plugin::Operators &operators,
                Problems &problems, bool isTraining)
      : builder(builder), sizes(sizes), weights(weights), reader(reader),
        operators(operators), problems(problems), isTraining(isTraining),
        known(weights), tracer(builder, sizes, weights, problems, isTraining) {
    tracer.setOperators(&operators);
  }

  mlir::OpBuilder &getBuilder() { return builder; }
  Sizes &getSizes() { return sizes; }
  TensorPool &getPool() { return pool; }
  Problems &getProblems() { return problems; }
  /// The model is to be trained.
  bool trains() const { return isTraining; }
  /// A number that no other random operator has.
  int64_t numberRandom() { return tracer.numberRandom(); }
  /// By which the bodies of plugins' operators become ops.
  aten::Tracer &getTracer() { return tracer; }

  void addFunctions(const onnx::ModelProto &model);
  /// What `graph` says about its tensors; it must outlive the importer.
  void addValueInfos(const onnx::GraphProto &graph);
  /// Values that do not depend on the inputs are made at the start of `block`.
  void setEntry(mlir::Block *block) { entry = block; }

  /// Adds the initializers of `graph` to `scope`, then imports the nodes that
  /// `wanted` depends on.
  void importGraph(const onnx::GraphProto &graph, Scope &scope,
                   llvm::ArrayRef<std::string> wanted);
  /// A subgraph of a node with the given tensors for its inputs; its outputs.
  llvm::SmallVector<Tensor *> importSubgraph(const onnx::GraphProto &graph,
                                             llvm::ArrayRef<Tensor *> inputs);

  /// The module's value of a tensor, made on first use; null if its numbers
  /// were left out (it is then reported).
  mlir::Value materialize(Tensor &tensor);
  std::optional<Content> getContent(Tensor &tensor);
  std::optional<llvm::SmallVector<double>> getFloats(Tensor &tensor);
  /// True if the tensor's numbers exist but were not read.
  bool isLeftOut(const Tensor &tensor) const {
    return tensor.literal && tensor.literal->isLeftOut;
  }
  /// A stored tensor under the given name. A failure goes to the node that
  /// `emitter` is, or for an initializer (null) to the problems.
  Tensor *readLiteral(const onnx::TensorProto &proto, llvm::StringRef name,
                      Emitter *emitter);
  Tensor *readSparseLiteral(const onnx::SparseTensorProto &proto,
                            llvm::StringRef name, Emitter *emitter);
  /// A tensor of numbers that the importer computed.
  template <typename T>
  Tensor *makeLiteral(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                      mlir::Type elementType, llvm::ArrayRef<T> numbers) {
    auto owned = std::make_shared<std::vector<T>>(numbers);
    Literal literal;
    literal.name = qualify(name.str());
    literal.type = mlir::RankedTensorType::get(shape, elementType);
    literal.bytes = {reinterpret_cast<const char *>(owned->data()),
                     owned->size() * sizeof(T)};
    literal.owner = owned;
    return pool.makeLiteral(std::move(literal));
  }
  /// A value's name with the calls that lead to it.
  std::string qualify(const std::string &name) const {
    return current->path + name;
  }
  /// A node's name with the calls that lead to it.
  std::string getPath(const onnx::NodeProto &node) const;
  /// The path of the module that `node` is of, as PyTorch's exporter recorded
  /// it; empty if it did not, or for the outermost one.
  static std::string getModulePath(const onnx::NodeProto &node);
  /// To be called before ops are erased.
  void forgetEvaluated() {
    known.forget();
    tracer.forgetEvaluated();
  }
  /// The attribute form of a small literal.
  static mlir::DenseElementsAttr makeDense(const Literal &literal);

private:
  Tensor *addLiteral(std::optional<Literal> literal, const LiteralError &error,
                     llvm::StringRef name, Emitter *emitter);
  void addInitializers(const onnx::GraphProto &graph, Scope &scope);
  void importNode(const onnx::NodeProto &node, Scope &scope);
  /// Gives what narrow inputs stand for to an op that reads them; false after
  /// reporting one that does not.
  bool decodeInputs(const onnx::NodeProto &node, const Scope &scope,
                    bool readsNarrow, llvm::MutableArrayRef<Tensor *> inputs);
  /// A narrow tensor as one of integers of 8 bits or of f32; null after
  /// failing.
  Tensor *decodeTensor(Emitter &emitter, Tensor &tensor);
  mlir::Location getLocation(const onnx::NodeProto &node, const Scope &scope);
  void runNode(const onnx::NodeProto &node, Scope &scope,
               AttributeMap attributes, llvm::ArrayRef<Tensor *> inputs,
               llvm::function_ref<void(Node &)> import);
  bool inlineFunction(const onnx::NodeProto &node, Scope &scope,
                      const AttributeMap &attributes,
                      llvm::ArrayRef<Tensor *> inputs);
  void
  importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
              Scope &scope, llvm::ArrayRef<std::string> wanted);
  bool collectAttributes(const onnx::NodeProto &node, const Scope &scope,
                         AttributeMap &attributes);
  bool collectInputs(const onnx::NodeProto &node, const Scope &scope,
                     llvm::SmallVectorImpl<Tensor *> &inputs);
  void define(Scope &scope, const std::string &name, Tensor *tensor,
              const onnx::NodeProto &node);
  void defineInvalid(const onnx::NodeProto &node, Scope &scope);
  void report(const onnx::NodeProto &node, const Scope &scope,
              ProblemClass kind, std::string message);
  mlir::Value materializeLiteral(Emitter &emitter, Tensor &tensor);
  Weight &addWeight(const Literal &literal);
  WeightRole getRole(llvm::StringRef name) const;
  void describeOrigin(Weight &weight, llvm::StringRef name) const;
  std::optional<HostTensor> getNumbers(Tensor &tensor);

  mlir::OpBuilder &builder;
  Sizes &sizes;
  WeightStore &weights;
  LiteralReader &reader;
  const plugin::Operators &operators;
  Problems &problems;
  bool isTraining;
  TensorPool pool;
  mlir::Block *entry = nullptr;
  /// The last op of those that depend on no input.
  mlir::Operation *lastConstant = nullptr;
  Scope *current = nullptr;
  KnownValues known;
  aten::Tracer tracer;
  llvm::DenseMap<const Literal *, std::string> weightNames;
  /// The decoded tensors of stored integers, whose bytes serve both.
  llvm::DenseMap<const Literal *, Tensor *> decoded;
  struct Function {
    const onnx::FunctionProto *proto;
    llvm::StringMap<int64_t> versions;
  };
  llvm::StringMap<Function> functions;
  llvm::StringMap<const onnx::ValueInfoProto *> valueInfos;
  int depth = 0;
  int64_t nodeCount = 0;
};

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_GRAPHIMPORTER_H
