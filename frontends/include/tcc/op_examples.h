//===- tcc/op_examples.h - Models of one call of an operator ----*- C++ -*-===//
#ifndef TCC_OP_EXAMPLES_H
#define TCC_OP_EXAMPLES_H

#include <cstdint>
#include <string>
#include <vector>

namespace tcc {

struct ExampleInput {
  std::string name;
  std::string type; ///< "f32"
  std::vector<int64_t> shape;

  bool isFloat() const { return type[0] == 'f' || type == "bf16"; }
};

/// One of an operator's examples (tcc_op_v1::examples).
struct OpExample {
  std::string name; ///< of the operator: "mine::swish"
  std::string text; ///< as the plugin has it
  std::vector<ExampleInput> inputs;
  size_t resultCount = 0;
  bool hasBody = false, hasKernels = false, hasGradient = false;
  /// What PTX and cubins among its kernels are for, which run on GPUs alone.
  std::vector<std::string> archs;
  /// ONNX models of the call alone, whose results are y0, y1, ...: with the
  /// types of the example, and with f64 instead of other floats.
  std::string model, wideModel;
};

struct OpExamples {
  std::vector<OpExample> examples;
  std::vector<std::string> problems; ///< lines for the user
  int exitCode = 0;                  ///< with problems
  std::vector<std::string> without;  ///< operators that have none
};

/// The examples of the operators in library `path`. Does not throw.
OpExamples readExamples(const std::string &path);

} // namespace tcc

#endif // TCC_OP_EXAMPLES_H
