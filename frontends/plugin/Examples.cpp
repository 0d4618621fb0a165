//===- Examples.cpp - Models of one call of an operator -------------------===//

#include "tcc/op_examples.h"

#include "frontends/plugin/ElementTypes.h"
#include "frontends/plugin/Operator.h"
#include "onnx.pb.h"
#include "llvm/Support/raw_ostream.h"

namespace tcc::plugin {

using llvm::StringRef;

static constexpr int64_t kMaxExtent = 4096, kMaxExamples = 64;

namespace {

/// Reads one example of `op`.
class ExampleReader {
public:
  ExampleReader(const Operator &op, StringRef text) : op(op), text(text) {}

  /// The reason if it is none.
  std::optional<std::string> read(OpExample &example);

private:
  std::optional<std::string> readArgument(StringRef argument,
                                          OpExample &example);
  std::optional<std::string> readTensor(StringRef name, StringRef value,
                                        OpExample &example);
  std::optional<std::string> readAttribute(const aten::Parameter &parameter,
                                           StringRef value);
  std::string write(const OpExample &example, bool isWide) const;

  const Operator &op;
  StringRef text;
  onnx::NodeProto node;
};

} // namespace

/// "f32[3, 17]".
std::optional<std::string>
ExampleReader::readTensor(StringRef name, StringRef value, OpExample &example) {
  auto [type, extents] = value.split('[');
  ExampleInput input{name.str(), type.trim().str(), {}};
  if (!findElementType(input.type) || !extents.consume_back("]"))
    return "'" + value.str() + "' is no type like f32[3, 17]";
  llvm::SmallVector<StringRef> parts;
  extents.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t extent;
    if (part.trim().getAsInteger(10, extent) || extent < 0 ||
        extent > kMaxExtent)
      return "'" + part.trim().str() + "' is no extent from 0 to 4096";
    input.shape.push_back(extent);
  }
  example.inputs.push_back(std::move(input));
  return std::nullopt;
}

std::optional<std::string>
ExampleReader::readAttribute(const aten::Parameter &parameter,
                             StringRef value) {
  onnx::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(parameter.name.str());
  int64_t integer;
  double real;
  bool isTrue = value == "True" || value == "False";
  if (isTrue || !value.getAsInteger(10, integer)) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(isTrue ? value == "True" : integer);
    if (parameter.type == "float") {
      attribute.set_type(onnx::AttributeProto::FLOAT);
      attribute.set_f(float(integer));
    }
  } else if (!value.getAsDouble(real)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(float(real));
  } else if (value.consume_front("\"") && value.consume_back("\"")) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value.str());
  } else {
    return "'" + value.str() + "' is no value of '" + parameter.name.str() +
           "'";
  }
  return std::nullopt;
}

std::optional<std::string> ExampleReader::readArgument(StringRef argument,
                                                       OpExample &example) {
  auto [name, value] = argument.split(':');
  name = name.trim();
  value = value.trim();
  auto place = op.schema.find(name);
  if (!place)
    return "'" + name.str() + "' is no argument";
  const aten::Parameter &parameter = op.schema.parameters[*place];
  return parameter.type == "Tensor" ? readTensor(name, value, example)
                                    : readAttribute(parameter, value);
}

/// Commas inside of brackets are no ends of arguments.
static llvm::SmallVector<StringRef> splitArguments(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ',')
      depth += (text[i] == '[') - (text[i] == ']');
    else if (depth <= 0) {
      parts.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  return parts;
}

static void describe(onnx::ValueInfoProto &info, const std::string &name,
                     int32_t type, llvm::ArrayRef<int64_t> shape) {
  info.set_name(name);
  auto &tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (int64_t extent : shape)
    tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

std::string ExampleReader::write(const OpExample &example, bool isWide) const {
  onnx::ModelProto model;
  model.set_ir_version(9);
  auto *set = model.add_opset_import();
  set->set_version(17);
  auto [domain, name] = StringRef(op.name).split("::");
  set = model.add_opset_import();
  set->set_domain(domain.str());
  set->set_version(op.since);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("example");
  for (const ExampleInput &input : example.inputs) {
    StringRef type = isWide && input.isFloat() ? "f64" : StringRef(input.type);
    describe(*graph.add_input(), input.name, findElementType(type)->onnxType,
             input.shape);
  }
  onnx::NodeProto &call = *graph.add_node();
  call = node;
  call.set_name(name.str());
  call.set_domain(domain.str());
  call.set_op_type(name.str());
  for (const aten::Parameter &parameter : op.schema.parameters) {
    if (parameter.type != "Tensor")
      continue;
    bool isGiven = llvm::any_of(example.inputs, [&](const ExampleInput &input) {
      return input.name == parameter.name;
    });
    call.add_input(isGiven ? parameter.name.str() : "");
  }
  for (size_t i = 0; i < op.resultCount; ++i) {
    call.add_output("y" + std::to_string(i));
    graph.add_output()->set_name(call.output(i));
  }
  return model.SerializeAsString();
}

std::optional<std::string> ExampleReader::read(OpExample &example) {
  example.name = op.name;
  example.text = text.str();
  example.resultCount = op.resultCount;
  example.hasBody = op.body;
  example.hasKernels = !op.kernels.empty();
  example.hasGradient = op.gradient;
  for (const Kernel &kernel : op.kernels)
    for (const KernelCode &code : kernel.codes)
      if (code.form == graph::CodeForm::ptx ||
          code.form == graph::CodeForm::cubin)
        example.archs.push_back(StringRef(code.machine).rtrim("af").str());
  for (StringRef argument : splitArguments(text))
    if (auto reason = readArgument(argument, example))
      return reason;
  example.model = write(example, false);
  example.wideModel = write(example, true);
  return std::nullopt;
}

OpExamples readExamples(const Operators &operators) {
  OpExamples found;
  for (const Operator *op : operators.getAll()) {
    llvm::SmallVector<StringRef> parts;
    StringRef(op->examples).split(parts, ';', -1, /*KeepEmpty=*/false);
    if (parts.empty())
      found.without.push_back(op->name);
    if (parts.size() > kMaxExamples) {
      found.problems.push_back(op->name + ": examples: are more than 64");
      continue;
    }
    for (StringRef part : parts) {
      OpExample example;
      if (auto reason = ExampleReader(*op, part.trim()).read(example))
        found.problems.push_back(op->name + ": examples: " + *reason);
      else
        found.examples.push_back(std::move(example));
    }
  }
  return found;
}

} // namespace tcc::plugin

tcc::OpExamples tcc::readExamples(const std::string &path) {
  OpExamples found;
  plugin::Operators operators;
  Problems problems;
  operators.load(path, problems);
  if (problems.empty())
    found = plugin::readExamples(operators);
  std::string text;
  llvm::raw_string_ostream stream(text);
  problems.print(stream);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    found.problems.push_back(line.str());
  constexpr int kBadData = 3;
  found.exitCode = problems.empty() ? kBadData : problems.getExitCode();
  return found;
}
