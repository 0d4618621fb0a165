#include "frontends/aten/Ops.h"

#include "llvm/ADT/StringMap.h"

namespace tcc::aten {

using Table = llvm::StringMap<std::vector<Overload>>;

static Table makeTable() {
  Table table;
  llvm::ArrayRef<OpRow> families[] = {
      getPointwiseOps(),   getActivationOps(),    getReductionOps(),
      getContractionOps(), getConvolutionOps(),   getPoolingOps(),
      getAttentionOps(),   getNormalizationOps(), getMovementOps(),
      getCreationOps(),    getIndexingOps(),      getRandomOps(),
      getRecurrentOps(),   getShapeOps()};
  for (llvm::ArrayRef<OpRow> rows : families)
    for (const OpRow &row : rows) {
      Schema schema = Schema::parse(row.schema);
      table[schema.name].push_back({&row, schema});
    }
  return table;
}

llvm::ArrayRef<Overload> findOverloads(llvm::StringRef name) {
  static const Table table = makeTable();
  auto found = table.find(name);
  if (found == table.end())
    return {};
  return found->second;
}

} // namespace tcc::aten
