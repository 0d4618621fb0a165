//===- CheckpointFiles.h - Tensors of a checkpoint in files -----*- C++ -*-===//
//
// What all ranks have the same rank 0 writes: state.safetensors. What ranks
// divide each writes of itself: rank-R.safetensors, where a part of a tensor is
// a vector named NAME[BEGIN:END].
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_TRAIN_CHECKPOINTFILES_H
#define TCC_RUNTIME_TRAIN_CHECKPOINTFILES_H

#include "runtime/package/Safetensors.h"
#include "runtime/train/Manifest.h"
#include "runtime/train/TensorMatch.h"

#include <map>

namespace tcc::runtime {

/// Whether a checkpoint has it: rounded copies follow from parameters, partial
/// sums mean nothing between updates, and rank and world are those of whoever
/// goes on.
bool isState(const format::Variable &variable);

/// A file that a rank writes.
struct Shard {
  std::string file;
  std::vector<Piece> pieces;         ///< by name and place
  std::vector<StoredTensor> tensors; ///< of the pieces, without bytes
  /// Where each begins in the file, and last how many bytes that has.
  std::vector<uint64_t> offsets;
};

/// What all ranks have the same.
Shard describeShared(const Variables &variables);
/// What rank `rank` alone has; it may be nothing.
Shard describePart(const Variables &variables, int rank);

/// Writes it into the folder and returns the digests of its pieces.
Result<std::vector<format::Digest>>
writeShard(Shard shard, const Variables &variables,
           const Variables::Snapshot &snapshot, const std::string &folder);

/// Adds its pieces to tensors by name.
void listShard(const Shard &shard, const Variables &variables,
               std::span<const format::Digest> digests,
               std::map<std::string_view, ListedTensor> &listed);

/// Code::BadData without the file.
Status checkExists(const std::string &path);

/// The files of a checkpoint, mapped.
class CheckpointFiles {
public:
  /// All of them; Code::BadData where one is missing or too short.
  static Result<CheckpointFiles> open(const std::string &folder,
                                      Manifest manifest);

  /// As the manifest lists them; they live as long as the files.
  std::span<const TensorSource> sources() const { return tensors; }

  /// Compares the digests of all parts that the matches need. Code::BadData
  /// where one is another.
  Status verify(std::span<const TensorMatch> matches) const;
  /// Of all that the manifest lists.
  Status verify() const;

private:
  Status openOldest();
  Status openListed(const ListedTensor &tensor);
  Result<std::span<const std::byte>> map(const std::string &file);
  Status verifyOldest() const;
  Status verify(const TensorSource &source, const TensorPart &part) const;

  std::string folder;
  Manifest manifest; ///< its tensors are in the order of `tensors`
  std::map<std::string, MappedFile> files;
  SafetensorsFile whole; ///< of the oldest version
  std::vector<TensorSource> tensors;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_CHECKPOINTFILES_H
