//===- Operator.h - Operators that plugins define ---------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PLUGIN_OPERATOR_H
#define TCC_FRONTENDS_PLUGIN_OPERATOR_H

#include "frontends/Frontend.h"
#include "frontends/aten/Schema.h"
#include "frontends/torchscript/Code.h"
#include "tcc/op.h"
#include "tcc/op_examples.h"
#include <map>

namespace tcc::aten {
struct Request;
class Tracer;
} // namespace tcc::aten

namespace tcc::plugin {

/// An expression of an operator's parameters, as a function that returns it.
struct Expression {
  std::string text;
  const torchscript::Node *function; // of the operator's code
};

/// Code of a kernel, in the library.
struct KernelCode {
  graph::CodeForm form;
  std::string machine;
  llvm::StringRef bytes;
  std::string name; ///< of its digest
};

/// A tcc_op_kernel_v1 whose texts were read.
struct Kernel {
  std::string target, symbol;
  std::vector<std::string> arguments, results;   ///< element types, as "f32"
  std::vector<Expression> sizes, tasks, scratch; ///< one task and scratch
  uint32_t threads = 0;                          ///< of a block; 0 on a CPU
  uint32_t sharedBytes = 0;                      ///< beside the code's own
  std::vector<KernelCode> codes;
};

/// A tcc_op_v1 whose texts were read.
struct Operator {
  std::string plugin; ///< path of the library
  std::string name;   ///< "mine::swish"
  int64_t since = 1;
  std::string text; ///< that `schema` refers to
  aten::Schema schema;
  size_t resultCount = 1;
  torchscript::Code code;
  const torchscript::Node *body = nullptr, *gradient = nullptr; ///< null: none
  std::vector<Expression> checks, shapes, flops;
  std::vector<Kernel> kernels;
  std::string examples; ///< as it is given
};

/// The operators of the plugins of one compilation. Immutable while a model is
/// imported.
class Operators {
public:
  /// Opens the library `path` and reads its operators; all that is wrong with
  /// it goes to `problems`. The library stays open.
  void load(const std::string &path, Problems &problems);
  /// The same of a library's description, which outlives the operators.
  void add(const std::string &path, const tcc_plugin_v1 &plugin,
           Problems &problems);

  /// The newest of this name that version `version` of its domain has; null if
  /// there is none.
  const Operator *find(llvm::StringRef name, int64_t version = INT64_MAX) const;
  const std::vector<PluginRecord> &getPlugins() const { return plugins; }
  bool empty() const { return operators.empty(); }
  /// All of them, by name and version.
  std::vector<const Operator *> getAll() const;
  /// What has a body gets no kernels from now on.
  void ignoreKernels();

private:
  std::vector<PluginRecord> plugins;
  /// By name, the newest last.
  std::map<std::string, std::map<int64_t, std::unique_ptr<Operator>>,
           std::less<>>
      operators;
};

/// What PluginRecord::digest is of the library `path`; nullopt and the reason
/// if it cannot be read.
std::optional<std::string> digestLibrary(const std::string &path,
                                         std::string &reason);

/// Imports a call of `op`; nullopt after reporting what is wrong with it.
std::optional<aten::Item> call(const Operator &op, aten::Tracer &tracer,
                               const aten::Request &request);

/// tcc::readExamples of operators that are read; `exitCode` is not set.
OpExamples readExamples(const Operators &operators);

} // namespace tcc::plugin

#endif // TCC_FRONTENDS_PLUGIN_OPERATOR_H
