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

/// An input that is a sequence or an optional of tensors, which are inputs of
/// the module.
struct Container {
  std::string name;
  bool isSequence;
  std::optional<SmallVector<std::string>> elements; ///< none if it is absent
};

/// The name of an element of a sequence that the graph takes or gives.
static std::string getElementName(const std::string &name, size_t i) {
  return name + "[" + std::to_string(i) + "]";
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
  void declareTensor(Signature &signature, const std::string &name,
                     const onnx::TypeProto::Tensor &tensor, bool isElement);
  void refuse(const std::string &name, const llvm::Twine &reason);
  void addInputs();
  void importOutputs();
  void addOutput(const std::string &name, Tensor &tensor);

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
  std::vector<Container> containers;
  llvm::StringSet<> inputNames; // of containers and of tensors
  std::vector<std::string> outputs;
  SmallVector<Value> results; // the values of `outputs`
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
  llvm::StringMap<Tensor *> made;
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
    made[input.name] = tensor;
  }
  TensorPool &pool = importer.getPool();
  for (const Container &container : containers) {
    SmallVector<Tensor *> elements;
    for (const std::string &name :
         container.elements.value_or(SmallVector<std::string>())) {
      elements.push_back(made.lookup(name)); // null for one that was refused
      made.erase(name);
    }
    Tensor *&tensor = scope.tensors[container.name];
    if (!container.elements)
      tensor = pool.makeAbsent();
    else if (llvm::is_contained(elements, nullptr))
      tensor = pool.makeInvalid();
    else
      tensor =
          container.isSequence ? pool.makeSequence(elements) : elements.front();
  }
  for (const auto &entry : made)
    scope.tensors.try_emplace(entry.first(), entry.second);
}

/// A sequence is its elements, an optional what it holds.
void ModelImporter::addOutput(const std::string &name, Tensor &tensor) {
  for (auto [i, element] :
       llvm::enumerate(tensor.sequence.value_or(SmallVector<Tensor *>())))
    if (element->isTensor())
      addOutput(getElementName(name, i), *element);
    else if (!element->isInvalid)
      return problems.add(ProblemClass::unsupported,
                          "output '" + name + "' is a sequence of sequences");
  if (!tensor.isTensor())
    return;
  if (Value value = importer.materialize(tensor)) {
    outputs.push_back(name);
    results.push_back(value);
  }
}

void ModelImporter::importOutputs() {
  std::vector<std::string> wanted = options.outputs;
  if (wanted.empty())
    for (const onnx::ValueInfoProto &output : proto->graph().output())
      wanted.push_back(output.name());
  if (wanted.empty())
    problems.add(ProblemClass::badBytes, "the graph has no outputs");
  importer.importGraph(proto->graph(), scope, wanted);
  for (const std::string &name : wanted) {
    if (Tensor *tensor = scope.find(name)) {
      addOutput(name, *tensor);
      continue;
    }
    bool isOption = !options.outputs.empty();
    problems.add(isOption ? ProblemClass::usage : ProblemClass::badBytes,
                 "output '" + name + "' is not a value of the graph");
  }
  if (problems.empty() && outputs.empty())
    problems.add(ProblemClass::unsupported,
                 "the outputs are sequences and optionals without elements");
  llvm::StringSet<> names;
  if (outputs.size() != wanted.size()) // sequences became their elements
    for (const std::string &name : outputs)
      if (!names.insert(name).second)
        problems.add(ProblemClass::badBytes,
                     "output '" + name + "' is defined twice");
  if (problems.empty())
    main->setResults(outputs, results);
}

/// Inputs that are none of a model's; they are reported.
void ModelImporter::refuse(const std::string &name, const llvm::Twine &reason) {
  problems.add(ProblemClass::unsupported,
               ("input '" + name + "' " + reason).str());
}

void ModelImporter::declareTensor(Signature &signature, const std::string &name,
                                  const onnx::TypeProto::Tensor &tensor,
                                  bool isElement) {
  if (!inputNames.insert(name).second)
    return problems.add(ProblemClass::badBytes,
                        "input '" + name + "' is defined twice");
  const NarrowType *narrow = findNarrowType(tensor.elem_type());
  Type type = narrow ? getStorageType(*narrow, builder.getContext())
                     : getElementType(tensor.elem_type(), builder.getContext());
  if (!type || (narrow && isElement)) {
    scope.tensors.try_emplace(name, importer.getPool().makeInvalid());
    return refuse(name, "has element type " + getTypeName(tensor.elem_type()));
  }
  DeclaredInput input{name, type, std::nullopt};
  if (tensor.has_shape())
    input.dims.emplace();
  for (int axis = 0; axis < tensor.shape().dim_size(); ++axis) {
    const auto &stored = tensor.shape().dim(axis);
    Dim dim{name + "." + std::to_string(axis)};
    if (stored.has_dim_value() && stored.dim_value() >= 0)
      dim = {"", stored.dim_value()};
    // Elements of one sequence may have other extents of one name.
    else if (!isElement && !stored.dim_param().empty() &&
             stored.dim_param() != "?")
      dim.name = stored.dim_param();
    input.dims->push_back(dim);
  }
  signature.add(std::move(input));
  narrowInputs[name] = narrow;
}

void ModelImporter::declareInput(Signature &signature,
                                 const onnx::ValueInfoProto &info) {
  const onnx::TypeProto *type = &info.type();
  if (type->has_tensor_type())
    return declareTensor(signature, info.name(), type->tensor_type(), false);
  bool isOptional = type->has_optional_type();
  if (isOptional)
    type = &type->optional_type().elem_type();
  bool isSequence = type->has_sequence_type();
  if (isSequence)
    type = &type->sequence_type().elem_type();
  const InputLength *length = nullptr;
  if (!type->has_tensor_type() || !(isOptional || isSequence))
    refuse(info.name(), "is not a tensor, nor a sequence or optional of them");
  else
    length = signature.findLength(info.name(), isSequence, isOptional);
  if (!length) {
    scope.tensors.try_emplace(info.name(), importer.getPool().makeInvalid());
    return;
  }
  Container container{info.name(), isSequence, std::nullopt};
  if (length->count)
    container.elements.emplace();
  for (int64_t i = 0; i < length->count.value_or(0); ++i) {
    container.elements->push_back(isSequence ? getElementName(info.name(), i)
                                             : info.name());
    declareTensor(signature, container.elements->back(), type->tensor_type(),
                  isSequence);
  }
  containers.push_back(std::move(container));
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
