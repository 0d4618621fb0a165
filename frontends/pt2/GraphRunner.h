//===- GraphRunner.h - Nodes of an exported program -------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PT2_GRAPHRUNNER_H
#define TCC_FRONTENDS_PT2_GRAPHRUNNER_H

#include "frontends/aten/Tracer.h"
#include "frontends/pt2/Json.h"
#include "llvm/ADT/StringSet.h"

namespace tcc::pt2 {

/// The values of a graph by name.
struct Scope {
  llvm::StringMap<aten::Item> items;
  /// Results of nodes that were not imported: their readers are not reported.
  llvm::StringSet<> invalid;
};

/// Runs the nodes of a graph, and of those within it.
class GraphRunner {
public:
  GraphRunner(aten::Tracer &tracer, Problems &problems)
      : tracer(tracer), problems(problems) {}

  /// Runs the nodes in their order.
  void run(const Json &graph, Scope &scope);
  /// What an argument of a node or output stands for; nullopt after reporting,
  /// or if it is a result that was not imported.
  std::optional<aten::Item> getItem(const Json &argument, Scope &scope);

private:
  void runNode(const Json &node, Scope &scope);
  std::optional<aten::Item> call(const Json &node, llvm::StringRef target,
                                 Scope &scope);
  std::optional<aten::Item> callNumbers(llvm::StringRef name,
                                        const aten::Request &request);
  std::optional<aten::Item> inlineGraph(const Json &graph,
                                        llvm::ArrayRef<const Json *> arguments,
                                        Scope &scope);
  std::optional<aten::Item> callHigherOrder(llvm::StringRef name,
                                            const Json &node, Scope &scope,
                                            const aten::Request &request);
  std::optional<aten::Item> branch(const Json &node, Scope &scope,
                                   const aten::Request &request);
  void define(const Json &node, std::optional<aten::Item> result, Scope &scope);
  void checkType(const Json &node, const std::string &name,
                 const aten::Item &item);
  std::optional<aten::Item> getItems(const Json &list, Scope &scope);
  std::optional<aten::Item> lookUp(const std::string &name, Scope &scope);
  void fail(ProblemClass kind, const Json &node, const llvm::Twine &message);

  aten::Tracer &tracer;
  Problems &problems;
  /// The types that the current graph states.
  const Json *types = nullptr;
  int depth = 0;
};

} // namespace tcc::pt2

#endif // TCC_FRONTENDS_PT2_GRAPHRUNNER_H
