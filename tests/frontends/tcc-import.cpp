//===- tcc-import.cpp - Prints the module of a model file
//---------------------===//
//
// tcc-import MODEL [--dim NAME=N] [--input-shape NAME=AxB] [--input-value
// NAME=V]
//            [--output NAME] [--state OUT=IN] [--weights=none] [--quiet]
//
//===----------------------------------------------------------------------===//

#include "frontends/Frontend.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> modelPath(cl::Positional, cl::Required);
static cl::list<std::string> dims("dim"), shapes("input-shape"),
    values("input-value"), outputs("output"), states("state");
static cl::opt<std::string> weights("weights", cl::init("embed"));
static cl::opt<bool> isQuiet("quiet"), showWeights("show-weights");

static tcc::ImportOptions makeOptions() {
  tcc::ImportOptions options;
  for (const std::string &text : dims)
    if (auto binding = tcc::parseDimBinding(text))
      options.dims.push_back(*binding);
  for (const std::string &text : shapes)
    if (auto shape = tcc::parseInputShape(text))
      options.inputShapes.push_back(*shape);
  for (llvm::StringRef text : values) {
    auto [name, value] = text.split('=');
    options.inputValues.push_back({name.str(), value.str()});
  }
  options.outputs.assign(outputs.begin(), outputs.end());
  for (llvm::StringRef text : states) {
    auto [output, input] = text.split('=');
    options.states.push_back({output.str(), input.str()});
  }
  options.readWeights = weights != "none";
  return options;
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
  if (!isQuiet)
    model->module->print(llvm::outs());
  if (showWeights)
    for (const tcc::Weight &weight : model->weights.get())
      llvm::outs() << "weight " << weight.name << ' ' << weight.type << ' '
                   << weight.bytes.size()
                   << (weight.structural ? " structural" : "") << '\n';
  return 0;
}
