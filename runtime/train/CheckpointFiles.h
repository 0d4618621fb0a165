//===- CheckpointFiles.h - Tensors of a checkpoint in files -----*- C++ -*-===//
//
// What all ranks have the same rank 0 writes: state.safetensors. What ranks
// divide each writes of itself: rank-R.safetensors, where a part of a tensor is
// a vector named NAME[BEGIN:END]. What is too large for one file lies in
// several, as state-00001-of-00003.safetensors.
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

/// A file has no more bytes, unless it is of one tensor.
inline constexpr uint64_t kMostFileBytes = uint64_t(2) << 30;

/// The files of what all ranks have the same.
std::vector<Shard> describeShared(const Variables &variables,
                                  uint64_t mostFileBytes);
/// The files of what rank `rank` alone has; none if that is nothing.
std::vector<Shard> describePart(const Variables &variables, int rank,
                                uint64_t mostFileBytes);

/// model.safetensors.index.json of all files, as readers of the Hugging Face
/// format want it.
std::string printIndex(std::span<const Shard> files);

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
  /// Compares the digests of all parts that the manifest lists.
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
