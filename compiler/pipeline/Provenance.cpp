#include "compiler/pipeline/Provenance.h"

#include "compiler/decisions/Decisions.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace tcc;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static std::string print(Value value) {
  return llvm::formatv("{0}", value).str();
}

static Object describeCpus(llvm::ArrayRef<cpu::Cpu> cpus) {
  Object object;
  for (const cpu::Cpu &cpu : cpus)
    object[cpu.name] = Array(cpu.features);
  return object;
}

static Object describeImport(const ImportOptions &options) {
  Object dims, shapes, values, states;
  for (const DimBinding &dim : options.dims)
    dims[dim.name] = Array{dim.min, dim.max, dim.step};
  for (const InputShape &shape : options.inputShapes)
    shapes[shape.name] = Array(shape.extents);
  for (const InputValue &value : options.inputValues)
    values[value.name] = value.text;
  for (const StatePair &state : options.states)
    states[state.output] = state.input;
  return Object{{"dim", std::move(dims)},
                {"input_shape", std::move(shapes)},
                {"input_value", std::move(values)},
                {"output", Array(options.outputs)},
                {"state", std::move(states)}};
}

std::string tcc::describeOptions(const CompileOptions &options,
                                 llvm::ArrayRef<cpu::Cpu> cpus) {
  Object object = describeImport(options.import);
  object["producer"] = "tcc " TCC_VERSION;
  object["cpu"] = describeCpus(cpus);
  return print(std::move(object));
}

std::string tcc::describeDecisions(mlir::ModuleOp module) {
  Array decisions;
  for (const Decision &decision : getDecisions(module)) {
    Object numbers;
    for (const auto &[name, value] : decision.numbers)
      numbers[name] = value;
    decisions.push_back(Object{{"pass", decision.pass},
                               {"node", decision.node},
                               {"decision", decision.decision},
                               {"reason", decision.reason},
                               {"numbers", std::move(numbers)}});
  }
  return print(std::move(decisions));
}
