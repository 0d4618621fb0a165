//===- TensorMatch.h - Tensors of files for variables -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_TENSORMATCH_H
#define TCC_RUNTIME_TRAIN_TENSORMATCH_H

#include "runtime/executor/Variables.h"
#include "runtime/package/Safetensors.h"

namespace tcc::runtime {

/// The model's own: a parameter or buffer.
bool isOfModel(const format::Variable &variable);

/// Elements [begin, begin + count) of a tensor in row-major order, in a file
/// that is mapped. Their bytes may be unaligned.
struct TensorPart {
  uint64_t begin, count;
  std::span<const std::byte> bytes;
};

/// A tensor that files have in parts, of which each begins where the one before
/// ends, or later.
struct TensorSource {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<TensorPart> parts;
};

/// Tensors that a file has as a whole; its bytes outlive them.
std::vector<TensorSource> makeSources(std::span<const StoredTensor> tensors);

struct MatchOptions {
  bool (*isRequired)(const format::Variable &) = nullptr;
  bool (*isAllowed)(const format::Variable &) = nullptr;
  bool convertsFloats = false; ///< from one type to another
};

/// What variables take of a tensor.
struct TensorMatch {
  const TensorSource *source;
  size_t variable;
  std::vector<Piece> pieces;
};

/// Pairs tensors that `path` has with those of the variables by name, in the
/// order of these: each has all elements that rank `rank` needs. One error
/// lists all that is missing, unexpected, or of another type.
Result<std::vector<TensorMatch>>
matchTensors(const Variables &variables, int rank,
             std::span<const TensorSource> sources, const std::string &path,
             const MatchOptions &options);

/// Elements [begin, end) of a tensor, which a part has and a piece needs.
struct Overlap {
  const Piece &piece;
  const TensorPart &part;
  uint64_t begin, end;
};
/// In the order of the elements.
std::vector<Overlap> findOverlaps(const Piece &piece,
                                  const TensorSource &source);

/// Writes elements of one type as another, both of floats or the same; source
/// and target have as many, which may lie unaligned.
void convert(DType from, std::span<const std::byte> source, DType to,
             std::span<std::byte> target);

Status copyTensors(Variables &variables, std::span<const TensorMatch> matches);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_TENSORMATCH_H
