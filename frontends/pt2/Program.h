//===- Program.h - What an exported program consists of ---------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PT2_PROGRAM_H
#define TCC_FRONTENDS_PT2_PROGRAM_H

#include "frontends/Archive.h"
#include "frontends/Frontend.h"
#include "frontends/StridedBytes.h"
#include "frontends/pt2/Json.h"

namespace tcc::pt2 {

/// A tensor of the archive that the graph takes as an argument.
struct StoredTensor {
  std::string argument; // the graph's name
  Weight weight;
};

/// Reads the parts of an archive; all that is wrong goes to the problems.
class Program {
public:
  Program(const Archive &archive, mlir::MLIRContext *context,
          Problems &problems)
      : archive(archive), context(context), problems(problems),
        copyBudget(archive.getFileSize()) {}

  /// False after reporting.
  bool read(bool readWeights);

  const Json &getGraph() const { return *find(getModule(), "graph"); }
  const Json &getSignature() const { return *find(getModule(), "signature"); }
  /// Bounds of the symbols of dimensions.
  const Json *getRanges() const { return find(model, "range_constraints"); }
  std::vector<StoredTensor> &getTensors() { return tensors; }
  /// Names beyond the first of tensors that share their memory, with it.
  llvm::ArrayRef<Alias> getAliases() const { return aliases; }

  void fail(ProblemClass kind, const llvm::Twine &message);

private:
  /// Where a tensor lies.
  struct Place {
    std::string path;
    const Json *meta;
  };

  const Json &getModule() const { return *find(model, "graph_module"); }
  bool checkFormat();
  bool readModel();
  std::optional<Json> readJson(const std::string &path);
  void readPlaces(const std::string &folder, llvm::StringRef name);
  void readInputSpecs();
  void addTensor(const std::string &argument, const std::string &name,
                 WeightRole role);
  bool readMeta(const Json &meta, Weight &weight, int64_t &offset,
                llvm::SmallVectorImpl<int64_t> &strides);
  bool readBytes(const Place &place, Weight &weight);

  const Archive &archive;
  mlir::MLIRContext *context;
  Problems &problems;
  CopyBudget copyBudget;
  bool readsWeights = true;
  Json model;
  std::deque<Json> configs; // places point into them
  llvm::StringMap<Place> places;
  std::vector<StoredTensor> tensors;
  /// The first name of each entry's tensor, with its type.
  llvm::StringMap<std::pair<std::string, mlir::Type>> firstNames;
  std::vector<Alias> aliases;
};

} // namespace tcc::pt2

#endif // TCC_FRONTENDS_PT2_PROGRAM_H
