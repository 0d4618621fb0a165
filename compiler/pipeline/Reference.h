//===- Reference.h - What a package should compute --------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_REFERENCE_H
#define TCC_COMPILER_PIPELINE_REFERENCE_H

#include "runtime/package/Tensor.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tcc {

/// The kernels of a package and its model, by the reference evaluator.
class Reference {
public:
  /// Compiles the model as far as to kernels, with the options that the package
  /// has on record, and `plugins`, the libraries that it names.
  static runtime::Result<std::unique_ptr<Reference>>
  create(const std::string &model, std::string_view options,
         const std::vector<std::string> &plugins);
  ~Reference();

  /// The results of a kernel. Its inputs lie at the first of `buffers`; `sizes`
  /// are those of the launch.
  runtime::Result<std::vector<runtime::Tensor>>
  evaluateKernel(std::string_view kernel, std::span<void *const> buffers,
                 std::span<const int64_t> sizes) const;

  /// The outputs of the model as it was imported.
  runtime::Result<std::vector<runtime::Tensor>>
  evaluateModel(std::span<const runtime::Tensor> inputs,
                std::span<const int64_t> symbols) const;

private:
  struct Modules;
  explicit Reference(std::unique_ptr<Modules> modules);

  std::unique_ptr<Modules> modules;
};

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_REFERENCE_H
