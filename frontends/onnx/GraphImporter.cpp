#include "frontends/onnx/GraphImporter.h"

#include "dialects/graph/NodeNames.h"
#include "frontends/onnx/Ops.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Subgraphs and function calls within each other.
constexpr int kMaxDepth = 64;
/// Inlining can multiply nodes; a file may not ask for more than this.
constexpr int64_t kMaxNodes = 4'000'000;

Tensor *Scope::find(StringRef name) const {
  for (const Scope *scope = this; scope; scope = scope->parent)
    if (Tensor *found = scope->tensors.lookup(name))
      return found;
  return nullptr;
}

bool Scope::isAbsent(StringRef name) const {
  for (const Scope *scope = this; scope; scope = scope->parent)
    if (auto entry = scope->tensors.find(name); entry != scope->tensors.end())
      return entry->second == nullptr;
  return false;
}

static std::string getNodeName(const onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return output;
  return node.op_type();
}

std::string GraphImporter::getPath(const onnx::NodeProto &node) const {
  return current->path + getNodeName(node);
}

/// Operator sets "" and "ai.onnx" are one.
static std::string getDomain(const std::string &domain) {
  return domain == "ai.onnx" ? "" : domain;
}

void GraphImporter::report(const onnx::NodeProto &node, const Scope &scope,
                           ProblemClass kind, std::string message) {
  std::string op = node.op_type();
  if (std::string domain = getDomain(node.domain()); !domain.empty())
    op = domain + "::" + op;
  problems.add({kind, scope.path + getNodeName(node), op, std::move(message)});
}

// --- Names -------------------------------------------------------------------

void GraphImporter::define(Scope &scope, const std::string &name,
                           Tensor *tensor, const onnx::NodeProto &node) {
  if (name.empty())
    return;
  if (!scope.tensors.try_emplace(name, tensor).second)
    report(node, scope, ProblemClass::badBytes,
           "value '" + name + "' is defined twice");
}

void GraphImporter::defineInvalid(const onnx::NodeProto &node, Scope &scope) {
  for (const std::string &output : node.output())
    if (!output.empty())
      scope.tensors.try_emplace(output, pool.makeInvalid());
}

Tensor *GraphImporter::addLiteral(std::optional<Literal> literal,
                                  const LiteralError &error, StringRef name,
                                  Emitter *emitter) {
  if (literal) {
    literal->name = name.str();
    literal->isInitializer = emitter == nullptr;
    return pool.makeLiteral(std::move(*literal));
  }
  if (emitter)
    emitter->fail(error.message);
  else
    problems.add(error.kind, error.message);
  return pool.makeInvalid();
}

Tensor *GraphImporter::readLiteral(const onnx::TensorProto &proto,
                                   StringRef name, Emitter *emitter) {
  LiteralError error;
  auto literal = reader.read(proto, error);
  return addLiteral(std::move(literal), error, name, emitter);
}

Tensor *GraphImporter::readSparseLiteral(const onnx::SparseTensorProto &proto,
                                         StringRef name, Emitter *emitter) {
  LiteralError error;
  auto literal = reader.readSparse(proto, error);
  return addLiteral(std::move(literal), error, name, emitter);
}

void GraphImporter::addInitializers(const onnx::GraphProto &graph,
                                    Scope &scope) {
  auto add = [&](const std::string &name, Tensor *tensor) {
    if (!scope.tensors.try_emplace(name, tensor).second)
      problems.add(ProblemClass::badBytes,
                   "initializer '" + name + "' is defined twice");
  };
  for (const onnx::TensorProto &proto : graph.initializer())
    add(proto.name(), readLiteral(proto, scope.path + proto.name(), nullptr));
  for (const onnx::SparseTensorProto &proto : graph.sparse_initializer()) {
    const std::string &name = proto.values().name();
    add(name, readSparseLiteral(proto, scope.path + name, nullptr));
  }
}

// --- Graphs ------------------------------------------------------------------

/// Names that the subgraphs of a node read, and those it names itself.
static void collectReads(const onnx::NodeProto &root,
                         llvm::StringSet<> &wanted) {
  SmallVector<const onnx::NodeProto *> stack = {&root};
  auto addGraph = [&](const onnx::GraphProto &graph) {
    for (const onnx::NodeProto &node : graph.node())
      stack.push_back(&node);
    for (const onnx::ValueInfoProto &output : graph.output())
      wanted.insert(output.name());
  };
  while (!stack.empty()) {
    const onnx::NodeProto *node = stack.pop_back_val();
    for (const std::string &input : node->input())
      wanted.insert(input);
    for (const onnx::AttributeProto &attribute : node->attribute()) {
      if (attribute.has_g())
        addGraph(attribute.g());
      for (const onnx::GraphProto &graph : attribute.graphs())
        addGraph(graph);
    }
  }
}

void GraphImporter::importNodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
    Scope &scope, ArrayRef<std::string> wanted) {
  llvm::StringSet<> names;
  for (const std::string &name : wanted)
    names.insert(name);
  std::vector<bool> isNeeded(nodes.size());
  for (int i = nodes.size() - 1; i >= 0; --i) {
    isNeeded[i] = llvm::any_of(nodes[i].output(), [&](const auto &name) {
      return !name.empty() && names.contains(name);
    });
    if (isNeeded[i])
      collectReads(nodes[i], names);
  }
  Scope *outer = current;
  current = &scope;
  for (int i = 0; i < nodes.size(); ++i)
    if (isNeeded[i])
      importNode(nodes[i], scope);
  current = outer;
}

void GraphImporter::importGraph(const onnx::GraphProto &graph, Scope &scope,
                                ArrayRef<std::string> wanted) {
  addInitializers(graph, scope);
  importNodes(graph.node(), scope, wanted);
}

SmallVector<Tensor *>
GraphImporter::importSubgraph(const onnx::GraphProto &graph,
                              ArrayRef<Tensor *> inputs) {
  Scope scope;
  scope.parent = current;
  scope.callAttributes = current->callAttributes;
  scope.versions = current->versions;
  scope.path = current->path;
  for (auto [info, tensor] : llvm::zip(graph.input(), inputs))
    scope.tensors.try_emplace(info.name(), tensor);
  SmallVector<std::string> wanted;
  for (const onnx::ValueInfoProto &output : graph.output())
    wanted.push_back(output.name());
  importGraph(graph, scope, wanted);
  SmallVector<Tensor *> results;
  for (const std::string &name : wanted) {
    Tensor *found = scope.find(name);
    if (!found)
      problems.add(ProblemClass::badBytes,
                   "subgraph output '" + name + "' is not defined");
    if (found && found->narrow) {
      problems.add(ProblemClass::unsupported, "subgraph output '" + name +
                                                  "' has element type " +
                                                  found->narrow->name.str());
      found = nullptr;
    }
    results.push_back(found ? found : pool.makeInvalid());
  }
  return results;
}

// --- Nodes -------------------------------------------------------------------

bool GraphImporter::collectAttributes(const onnx::NodeProto &node,
                                      const Scope &scope,
                                      AttributeMap &attributes) {
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    const onnx::AttributeProto *actual = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      if (!scope.callAttributes) {
        report(node, scope, ProblemClass::badBytes,
               "attribute '" + attribute.name() +
                   "' refers to a function's outside of one");
        return false;
      }
      actual = scope.callAttributes->lookup(attribute.ref_attr_name());
    }
    if (actual)
      attributes[attribute.name()] = actual;
  }
  return true;
}

bool GraphImporter::collectInputs(const onnx::NodeProto &node,
                                  const Scope &scope,
                                  SmallVectorImpl<Tensor *> &inputs) {
  bool isValid = true;
  for (const std::string &name : node.input()) {
    Tensor *found = name.empty() ? nullptr : scope.find(name);
    bool isAbsent = name.empty() || scope.isAbsent(name);
    if (!isAbsent && !found)
      report(node, scope, ProblemClass::badBytes,
             "input '" + name + "' is not defined before the node");
    isValid &= isAbsent || (found && !found->isInvalid);
    inputs.push_back(found && found->isAbsent ? nullptr : found);
  }
  return isValid;
}

void GraphImporter::importNode(const onnx::NodeProto &node, Scope &scope) {
  // Whatever goes wrong below, the outputs exist and are invalid.
  auto finish = llvm::make_scope_exit([&] { defineInvalid(node, scope); });
  if (++nodeCount > kMaxNodes) {
    if (nodeCount == kMaxNodes + 1)
      report(node, scope, ProblemClass::badBytes,
             "the model has more than 4 million nodes after inlining");
    return;
  }
  AttributeMap attributes;
  SmallVector<Tensor *> inputs;
  bool isValid = collectAttributes(node, scope, attributes);
  isValid &= collectInputs(node, scope, inputs);
  std::string domain = getDomain(node.domain());
  auto version = scope.versions->find(domain);
  if (version != scope.versions->end())
    if (const plugin::Operator *op =
            operators.find(domain + "::" + node.op_type(), version->second)) {
      if (isValid && decodeInputs(node, scope, false, inputs))
        runNode(node, scope, std::move(attributes), inputs,
                [op](Node &node) { importCustom(*op, node); });
      return;
    }
  if (functions.contains(domain + "::" + node.op_type())) {
    if (isValid)
      inlineFunction(node, scope, attributes, inputs);
    return;
  }
  if (version == scope.versions->end())
    return report(node, scope, ProblemClass::badBytes,
                  "the model does not import operator set '" + domain + "'");
  if (domain == kOrtBlockedDomain)
    return report(node, scope, ProblemClass::unsupported,
                  "operator is of onnxruntime's blocked layout; optimise the "
                  "model with level 'extended' instead of 'all'");
  const OpRow *row = findOp(domain, node.op_type(), version->second);
  if (!row)
    return report(node, scope, ProblemClass::unsupported,
                  "operator is not supported in version " +
                      std::to_string(version->second) + " of its set");
  if (isValid && decodeInputs(node, scope, row->readsNarrow, inputs))
    runNode(node, scope, std::move(attributes), inputs, row->import);
}

bool GraphImporter::decodeInputs(const onnx::NodeProto &node,
                                 const Scope &scope, bool readsNarrow,
                                 MutableArrayRef<Tensor *> inputs) {
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!input || !input->narrow)
      continue;
    if (!readsNarrow) {
      report(node, scope, ProblemClass::unsupported,
             "input '" + node.input(i) + "' has element type " +
                 input->narrow->name.str());
      return false;
    }
    Emitter emitter(builder, getLocation(node, scope), sizes);
    input = decodeTensor(emitter, *input);
    if (!input) {
      report(node, scope, ProblemClass::badBytes, emitter.getMessage());
      return false;
    }
  }
  return true;
}

Location GraphImporter::getLocation(const onnx::NodeProto &node,
                                    const Scope &scope) {
  std::string name = scope.path + getNodeName(node);
  std::string module = getModulePath(node);
  return makeNodeLocation(
      builder.getContext(),
      {.name = name, .op = node.op_type(), .module = module});
}

void GraphImporter::runNode(const onnx::NodeProto &proto, Scope &scope,
                            AttributeMap attributes, ArrayRef<Tensor *> inputs,
                            llvm::function_ref<void(Node &)> import) {
  int64_t version = scope.versions->lookup(getDomain(proto.domain()));
  size_t problemCount = problems.get().size();
  Node node(*this, proto, std::move(attributes), version, inputs,
            getLocation(proto, scope));
  if (depth >= kMaxDepth)
    return report(proto, scope, ProblemClass::badBytes,
                  "subgraphs and functions are nested too deeply");
  ++depth;
  import(node);
  --depth;
  for (int i = 0; i < proto.output_size() && !node.hasFailed(); ++i)
    if (node.hasOutput(i) && !node.getResults()[i])
      node.unsupported("output " + llvm::Twine(i) + " ('" + proto.output(i) +
                       "')");
  if (node.hasFailed()) {
    // A subgraph reports its own nodes.
    if (problems.get().size() == problemCount)
      report(proto, scope,
             node.isUnsupported() ? ProblemClass::unsupported
                                  : ProblemClass::badBytes,
             node.getMessage());
    return;
  }
  for (int i = 0; i < proto.output_size(); ++i)
    define(scope, proto.output(i), node.getResults()[i], proto);
}

// --- Model-local functions ---------------------------------------------------

void GraphImporter::addFunctions(const onnx::ModelProto &model) {
  for (const onnx::FunctionProto &proto : model.functions()) {
    Function function{&proto, {}};
    for (const onnx::OperatorSetIdProto &set : proto.opset_import())
      function.versions[getDomain(set.domain())] = set.version();
    functions.try_emplace(getDomain(proto.domain()) + "::" + proto.name(),
                          std::move(function));
  }
}

bool GraphImporter::inlineFunction(const onnx::NodeProto &node, Scope &scope,
                                   const AttributeMap &attributes,
                                   ArrayRef<Tensor *> inputs) {
  const Function &function =
      functions.find(getDomain(node.domain()) + "::" + node.op_type())->second;
  if (depth >= kMaxDepth) {
    report(node, scope, ProblemClass::badBytes,
           "functions are nested too deeply, or call themselves");
    return false;
  }
  AttributeMap actual = attributes;
  for (const onnx::AttributeProto &fallback : function.proto->attribute_proto())
    actual.try_emplace(fallback.name(), &fallback);
  Scope body;
  body.callAttributes = &actual;
  body.versions = &function.versions;
  body.path = scope.path + getNodeName(node) + "/";
  for (auto [name, tensor] : llvm::zip(function.proto->input(), inputs))
    if (tensor)
      body.tensors.try_emplace(name, tensor);
  // An input that is not given reads as absent.
  for (const std::string &name : function.proto->input())
    body.tensors.try_emplace(name, nullptr);
  SmallVector<std::string> wanted(function.proto->output().begin(),
                                  function.proto->output().end());
  ++depth;
  importNodes(function.proto->node(), body, wanted);
  --depth;
  for (auto [name, output] : llvm::zip(wanted, node.output()))
    if (Tensor *result = body.find(name))
      define(scope, output, result, node);
  return true;
}

} // namespace tcc::onnx_import
