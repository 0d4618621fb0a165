#include "frontends/onnx/Ops.h"

namespace tcc::onnx_import {

static const OpRow *findIn(llvm::ArrayRef<OpRow> rows, llvm::StringRef domain,
                           llvm::StringRef name, int64_t version) {
  for (const OpRow &row : rows)
    if (row.name == name && row.domain == domain && row.since <= version &&
        version <= row.until)
      return &row;
  return nullptr;
}

const OpRow *findOp(llvm::StringRef domain, llvm::StringRef name,
                    int64_t version) {
  llvm::ArrayRef<OpRow> families[] = {
      getPointwiseOps(),     getCastOps(),         getReductionOps(),
      getContractionOps(),   getConvolutionOps(),  getPoolingOps(),
      getNormalizationOps(), getMovementOps(),     getShapeOps(),
      getRearrangementOps(), getResizeOps(),       getIndexingOps(),
      getRandomOps(),        getControlOps(),      getSequenceOps(),
      getRecurrentOps(),     getQuantizationOps(), getLossOps(),
      getSignalOps(),        getSamplingOps(),     getRegionOps(),
      getAttentionOps(),     getDecodingOps(),     getFusedNormalizationOps(),
      getQuantizedFormOps(), getCompactionOps(),   getNgramOps()};
  for (llvm::ArrayRef<OpRow> rows : families)
    if (const OpRow *row = findIn(rows, domain, name, version))
      return row;
  return nullptr;
}

} // namespace tcc::onnx_import
