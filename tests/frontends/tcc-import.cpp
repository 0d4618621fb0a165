//===- tcc-import.cpp - Prints the module of a model file -----------------===//
//
// tcc-import MODEL [--dim NAME=N] [--input-shape NAME=AxB]
//            [--input-value NAME=V] [--input-length NAME=N] [--bound NAME=N]
//            [--output NAME] [--state OUT=IN] [--plugin FILE]
//            [--weights=none] [--quiet] [--show-weights] [--locations]
//            [--train] [--evaluate DIR]
//
// --evaluate runs the reference evaluator on the elements in DIR/input_<i>.bin
// and writes DIR/result_<i>.bin.
//
//===----------------------------------------------------------------------===//

#include "dialects/graph/evaluate/Evaluator.h"
#include "frontends/Frontend.h"
#include "mlir/IR/Verifier.h"
#include "tools/cli/ModelFlags.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> modelPath(cl::Positional, cl::Required);
static cl::list<std::string> dims("dim"), shapes("input-shape"),
    values("input-value"), lengths("input-length"), bounds("bound"),
    outputs("output"), states("state"), plugins("plugin");
static cl::opt<std::string> weights("weights", cl::init("embed")),
    folder("evaluate");
static cl::opt<bool> isQuiet("quiet"), showWeights("show-weights"),
    showLocations("locations"), trains("train");

/// Reads each text; ends the tool at a malformed one.
template <typename T>
static void parseAll(const cl::list<std::string> &texts,
                     std::optional<T> parse(std::string_view),
                     std::vector<T> &values) {
  for (const std::string &text : texts) {
    std::optional<T> value = parse(text);
    if (!value) {
      llvm::errs() << "tcc-import: malformed '" << text << "'\n";
      std::exit(2);
    }
    values.push_back(*value);
  }
}

static tcc::ImportOptions makeOptions() {
  tcc::ImportOptions options;
  parseAll(dims, tcc::tools::parseDimBinding, options.dims);
  parseAll(shapes, tcc::tools::parseInputShape, options.inputShapes);
  parseAll(values, tcc::tools::parseInputValue, options.inputValues);
  parseAll(lengths, tcc::tools::parseInputLength, options.inputLengths);
  parseAll(bounds, tcc::tools::parseSizeBound, options.bounds);
  parseAll(states, tcc::tools::parseStatePair, options.states);
  options.outputs.assign(outputs.begin(), outputs.end());
  options.plugins.assign(plugins.begin(), plugins.end());
  options.readWeights = weights != "none";
  options.trains = trains;
  return options;
}

static llvm::Expected<tcc::HostTensor> readInput(RankedTensorType type,
                                                 unsigned i) {
  std::string path = folder + "/input_" + std::to_string(i) + ".bin";
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError(buffer.getError(), path.c_str());
  llvm::StringRef bytes = (*buffer)->getBuffer();
  return tcc::readBytes(type, ArrayRef(bytes.data(), bytes.size()));
}

static llvm::Error evaluate(tcc::Model &model) {
  auto function = model.module->lookupSymbol<func::FuncOp>("main");
  SmallVector<tcc::HostTensor> inputs;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto input = readInput(cast<RankedTensorType>(type), i);
    if (!input)
      return input.takeError();
    inputs.push_back(std::move(*input));
  }
  auto readWeight = [&](llvm::StringRef name, RankedTensorType type) {
    return tcc::readBytes(type, model.weights.find(name)->bytes);
  };
  auto results = tcc::Evaluator({}, readWeight).evaluate(function, inputs);
  if (!results)
    return results.takeError();
  for (auto [i, result] : llvm::enumerate(*results)) {
    std::error_code code;
    llvm::raw_fd_ostream stream(
        folder + "/result_" + std::to_string(i) + ".bin", code);
    std::vector<char> bytes = tcc::makeBytes(result);
    stream.write(bytes.data(), bytes.size());
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  MLIRContext context;
  tcc::Problems problems(modelPath);
  auto model = tcc::importModel(modelPath, makeOptions(), &context, problems);
  if (failed(model)) {
    problems.print(llvm::errs());
    return problems.getExitCode();
  }
  for (const std::string &note : model->notes)
    llvm::errs() << "note: " << note << '\n';
  if (failed(verify(*model->module)))
    return 70;
  if (!folder.empty()) {
    llvm::Error error = evaluate(*model);
    if (!error)
      return 0;
    llvm::errs() << llvm::toString(std::move(error)) << '\n';
    return 1;
  }
  OpPrintingFlags flags;
  flags.enableDebugInfo(showLocations);
  if (!isQuiet)
    model->module->print(llvm::outs(), flags);
  if (showWeights)
    for (const tcc::Weight &weight : model->weights.get())
      llvm::outs() << "weight " << weight.name << ' ' << weight.type << ' '
                   << weight.bytes.size()
                   << (weight.structural ? " structural" : "") << '\n';
  return 0;
}
