//===- Import.cpp - An ONNX file to a module ------------------------------===//

#include "frontends/onnx/Import.h"

#include "frontends/MainFunction.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"
#include "llvm/ADT/StringSet.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

using namespace mlir;

namespace tcc::onnx_import {

/// Null after reporting.
static std::shared_ptr<const onnx::ModelProto> parse(const MappedFile &file,
                                                     Problems &problems) {
  google::protobuf::SetLogHandler(nullptr); // we print our own message
  auto model = std::make_shared<onnx::ModelProto>();
  bool fits = file.bytes.size() <= size_t(INT_MAX);
  google::protobuf::io::ArrayInputStream stream(
      file.bytes.data(), fits ? int(file.bytes.size()) : 0);
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
                const ImportOptions &options,
                const plugin::Operators &operators, const std::string &folder,
                MLIRContext *context, Problems &problems)
      : proto(std::move(proto)), options(options), problems(problems),
        builder(context), sizes(context, options.bounds),
        reader(context, folder, this->proto, options.readWeights),
        importer(builder, sizes, model.weights, reader, operators, problems,
                 options.trains) {}

  FailureOr<Model> run();

private:
  bool checkVersions();
  void declareInputs(Signature &signature);
  void declareInput(Signature &signature, const onnx::ValueInfoProto &info);
  void refuse(const onnx::ValueInfoProto &info, const llvm::Twine &reason);
  void addInputs();
  void importOutputs();

  std::shared_ptr<const onnx::ModelProto> proto;
  const ImportOptions &options;
  Problems &problems;
  OpBuilder builder;
  Sizes sizes;
  Model model;
  LiteralReader reader;
  GraphImporter importer;
  std::optional<MainFunction> main;
  std::vector<ModelInput> inputs;
  std::vector<std::string> outputs;
  Scope scope;
  llvm::StringMap<int64_t> versions;
  llvm::StringMap<const NarrowType *> narrowInputs; // null for other types
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

void ModelImporter::addInputs() {
  for (auto [i, input] : llvm::enumerate(inputs)) {
    Tensor *tensor = importer.getPool().make({});
    if (input.fixed) {
      ArrayRef<char> bytes(input.fixed->data(), input.fixed->size());
      Literal literal{input.name, input.type, bytes, nullptr};
      tensor = importer.getPool().makeLiteral(std::move(literal));
    }
    tensor->type = input.type;
    tensor->narrow = narrowInputs.lookup(input.name);
    tensor->value = main->getInput(i);
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
  main->setResults(outputs, values);
}

/// Inputs that are none of a model's; they are reported.
void ModelImporter::refuse(const onnx::ValueInfoProto &info,
                           const llvm::Twine &reason) {
  problems.add(ProblemClass::unsupported,
               ("input '" + info.name() + "' " + reason).str());
  scope.tensors.try_emplace(info.name(), importer.getPool().makeInvalid());
}

void ModelImporter::declareInput(Signature &signature,
                                 const onnx::ValueInfoProto &info) {
  if (!info.type().has_tensor_type())
    return refuse(info, "is not a tensor");
  const auto &tensor = info.type().tensor_type();
  const NarrowType *narrow = findNarrowType(tensor.elem_type());
  Type type = narrow ? getStorageType(*narrow, builder.getContext())
                     : getElementType(tensor.elem_type(), builder.getContext());
  if (!type)
    return refuse(info, "has element type " + getTypeName(tensor.elem_type()));
  DeclaredInput input{info.name(), type, std::nullopt};
  if (tensor.has_shape())
    input.dims.emplace();
  for (int axis = 0; axis < tensor.shape().dim_size(); ++axis) {
    const auto &stored = tensor.shape().dim(axis);
    Dim dim{info.name() + "." + std::to_string(axis)};
    if (stored.has_dim_value() && stored.dim_value() >= 0)
      dim = {"", stored.dim_value()};
    else if (!stored.dim_param().empty() && stored.dim_param() != "?")
      dim.name = stored.dim_param();
    input.dims->push_back(dim);
  }
  signature.add(std::move(input));
  narrowInputs[info.name()] = narrow;
}

void ModelImporter::declareInputs(Signature &signature) {
  llvm::StringSet<> initializers, seen;
  for (const auto &initializer : proto->graph().initializer())
    initializers.insert(initializer.name());
  for (const auto &initializer : proto->graph().sparse_initializer())
    initializers.insert(initializer.values().name());
  for (const onnx::ValueInfoProto &info : proto->graph().input()) {
    if (!seen.insert(info.name()).second)
      problems.add(ProblemClass::badBytes,
                   "input '" + info.name() + "' is defined twice");
    else if (!initializers.contains(info.name()))
      declareInput(signature, info);
  }
}

FailureOr<Model> ModelImporter::run() {
  if (!checkVersions())
    return failure();
  Signature signature(options, sizes, problems, model.notes);
  declareInputs(signature);
  inputs = signature.resolve();
  model.batch = signature.getBatch();
  model.variants = signature.takeVariants();
  main.emplace(builder, proto->graph().name(), inputs);
  importer.setEntry(main->getEntry());
  addInputs();
  importer.addFunctions(*proto);
  importer.addValueInfos(proto->graph());
  scope.versions = &versions;
  importOutputs();
  if (!problems.empty())
    return failure();
  main->setStates(options.states, problems);
  model.module = main->take(sizes, problems, model.notes);
  for (const auto &entry : proto->metadata_props())
    model.metadata.push_back({entry.key(), entry.value()});
  if (!problems.empty())
    return failure();
  return std::move(model);
}

FailureOr<Model> importFile(const MappedFile &file, StringRef path,
                            const ImportOptions &options,
                            const plugin::Operators &operators,
                            MLIRContext *context, Problems &problems) {
  auto proto = parse(file, problems);
  if (!proto)
    return failure();
  size_t slash = path.rfind('/');
  std::string folder =
      slash == StringRef::npos ? "." : path.take_front(slash + 1).str();
  return ModelImporter(std::move(proto), options, operators, folder, context,
                       problems)
      .run();
}

} // namespace tcc::onnx_import
