//===- Import.cpp - An ONNX file to a module ------------------------------===//

#include "compiler/evaluate/Evaluator.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/IndexRanges.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

using namespace mlir;

namespace tcc {
namespace onnx_import {

/// Parses the file; null after reporting.
static std::shared_ptr<const onnx::ModelProto> parse(const std::string &path,
                                                     Problems &problems) {
  std::string reason;
  auto file = mapFile(path, reason);
  if (!file) {
    problems.add(ProblemClass::io, "cannot be read: " + reason);
    return nullptr;
  }
  google::protobuf::SetLogHandler(nullptr); // we print our own message
  auto model = std::make_shared<onnx::ModelProto>();
  bool fits = file->bytes.size() <= size_t(INT_MAX);
  google::protobuf::io::ArrayInputStream stream(
      file->bytes.data(), fits ? int(file->bytes.size()) : 0);
  google::protobuf::io::CodedInputStream input(&stream);
  input.SetTotalBytesLimit(INT_MAX);
  if (!fits || !model->ParseFromCodedStream(&input) ||
      !input.ConsumedEntireMessage() || !model->has_graph()) {
    problems.add(ProblemClass::badBytes, "is not an ONNX model");
    return nullptr;
  }
  return model;
}

/// Builds the module of one model.
class ModelImporter {
public:
  ModelImporter(std::shared_ptr<const onnx::ModelProto> proto,
                const ImportOptions &options, const std::string &folder,
                MLIRContext *context, Problems &problems)
      : proto(std::move(proto)), options(options), problems(problems),
        builder(context), sizes(context),
        reader(context, folder, this->proto, options.readWeights),
        importer(builder, sizes, model.weights, reader, problems,
                 options.trains) {}

  FailureOr<Model> run();

private:
  bool checkVersions();
  void createFunction();
  void importOutputs();
  void setStates();
  std::optional<int64_t> findInput(const std::string &name);
  std::optional<int64_t> findOutput(const std::string &name);

  std::shared_ptr<const onnx::ModelProto> proto;
  const ImportOptions &options;
  Problems &problems;
  OpBuilder builder;
  Sizes sizes;
  Model model;
  LiteralReader reader;
  GraphImporter importer;
  func::FuncOp function;
  std::vector<ModelInput> inputs;
  std::vector<std::string> outputs;
  Scope scope;
  llvm::StringMap<int64_t> versions;
};

bool ModelImporter::checkVersions() {
  for (const onnx::OperatorSetIdProto &set : proto->opset_import())
    versions[set.domain() == "ai.onnx" ? "" : set.domain()] = set.version();
  auto version = versions.find("");
  // A model of functions alone need not import the standard operators.
  if (version == versions.end() ||
      (version->second >= kFirstOpset && version->second <= kLastOpset))
    return true;
  problems.add(ProblemClass::unsupported,
               "uses version " + std::to_string(version->second) +
                   " of the ONNX operator set; " + std::to_string(kFirstOpset) +
                   " to " + std::to_string(kLastOpset) + " are supported");
  return false;
}

void ModelImporter::createFunction() {
  MLIRContext *context = builder.getContext();
  auto loc = NameLoc::get(builder.getStringAttr(proto->graph().name()));
  model.module = ModuleOp::create(loc);
  SmallVector<Type> types;
  for (const ModelInput &input : inputs)
    types.push_back(input.type);
  builder.setInsertionPointToStart(model.module->getBody());
  function = builder.create<func::FuncOp>(
      loc, "main", FunctionType::get(context, types, {}));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  importer.setEntry(block);
  for (auto [i, input] : llvm::enumerate(inputs)) {
    function.setArgAttr(i, graph::GraphDialect::kNameAttr,
                        builder.getStringAttr(input.name));
    block->getArgument(i).setLoc(
        NameLoc::get(builder.getStringAttr(input.name)));
    Tensor *tensor = importer.getPool().make({});
    if (input.fixed) {
      ArrayRef<char> bytes(input.fixed->data(), input.fixed->size());
      Literal literal{input.name, input.type, bytes, nullptr};
      tensor = importer.getPool().makeLiteral(std::move(literal));
      function.setArgAttr(i, "graph.fixed",
                          importer.makeDense(*tensor->literal));
    }
    tensor->type = input.type;
    tensor->value = block->getArgument(i);
    scope.tensors.try_emplace(input.name, tensor);
  }
}

void ModelImporter::importOutputs() {
  outputs = options.outputs;
  if (outputs.empty())
    for (const onnx::ValueInfoProto &output : proto->graph().output())
      outputs.push_back(output.name());
  if (outputs.empty())
    problems.add(ProblemClass::badBytes, "the graph has no outputs");
  importer.importGraph(proto->graph(), scope, outputs);
  SmallVector<Value> values;
  for (const std::string &name : outputs) {
    Tensor *tensor = scope.find(name);
    if (!tensor) {
      bool isOption = !options.outputs.empty();
      problems.add(isOption ? ProblemClass::usage : ProblemClass::badBytes,
                   "output '" + name + "' is not a value of the graph");
    } else if (tensor->sequence) {
      problems.add(ProblemClass::unsupported,
                   "output '" + name + "' is a sequence");
    } else if (Value value = importer.materialize(*tensor)) {
      values.push_back(value);
    }
  }
  if (!problems.empty())
    return;
  builder.create<func::ReturnOp>(function.getLoc(), values);
  function.setFunctionType(builder.getFunctionType(
      function.getArgumentTypes(), ValueRange(values).getTypes()));
  for (auto [i, name] : llvm::enumerate(outputs))
    function.setResultAttr(i, graph::GraphDialect::kNameAttr,
                           builder.getStringAttr(name));
}

std::optional<int64_t> ModelImporter::findInput(const std::string &name) {
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input.name == name)
      return i;
  problems.add(ProblemClass::usage, "no input is named '" + name + "'");
  return std::nullopt;
}

std::optional<int64_t> ModelImporter::findOutput(const std::string &name) {
  for (auto [i, output] : llvm::enumerate(outputs))
    if (output == name)
      return i;
  problems.add(ProblemClass::usage, "no output is named '" + name + "'");
  return std::nullopt;
}

void ModelImporter::setStates() {
  SmallVector<Attribute> pairs;
  llvm::SmallDenseSet<int64_t> updated, kept;
  FunctionType type = function.getFunctionType();
  for (const StatePair &state : options.states) {
    auto input = findInput(state.input), output = findOutput(state.output);
    if (!input || !output)
      continue;
    if (type.getInput(*input) != type.getResult(*output))
      problems.add(ProblemClass::usage,
                   "state '" + state.output + "' = '" + state.input +
                       "' joins tensors of different types");
    if (!updated.insert(*input).second)
      problems.add(ProblemClass::usage,
                   "input '" + state.input + "' is in more than one state");
    if (!kept.insert(*output).second)
      problems.add(ProblemClass::usage,
                   "output '" + state.output + "' is in more than one state");
    pairs.push_back(builder.getI64ArrayAttr({*input, *output}));
  }
  if (!pairs.empty())
    function->setAttr("graph.states", builder.getArrayAttr(pairs));
}

FailureOr<Model> ModelImporter::run() {
  if (!checkVersions())
    return failure();
  Signature signature(proto->graph(), options, sizes, builder.getContext(),
                      problems, model.notes);
  inputs = signature.resolve();
  for (const std::string &name : signature.getRefused())
    scope.tensors.try_emplace(name, importer.getPool().makeInvalid());
  createFunction();
  importer.addFunctions(*proto);
  importer.addValueInfos(proto->graph());
  scope.versions = &versions;
  importOutputs();
  if (!problems.empty())
    return failure();
  setStates();
  setIndexRanges(function);
  graph::setSymbols(*model.module, sizes.getSymbols());
  for (const auto &entry : proto->metadata_props())
    model.metadata.push_back({entry.key(), entry.value()});
  if (!problems.empty())
    return failure();
  return std::move(model);
}

} // namespace onnx_import

FailureOr<Model> importModel(StringRef path, const ImportOptions &options,
                             MLIRContext *context, Problems &problems) {
  DialectRegistry registry;
  registry.insert<graph::GraphDialect, func::FuncDialect>();
  registerEvaluatorDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  auto proto = onnx_import::parse(path.str(), problems);
  if (!proto)
    return failure();
  size_t slash = path.rfind('/');
  std::string folder =
      slash == StringRef::npos ? "." : path.take_front(slash + 1).str();
  return onnx_import::ModelImporter(std::move(proto), options, folder, context,
                                    problems)
      .run();
}

} // namespace tcc
