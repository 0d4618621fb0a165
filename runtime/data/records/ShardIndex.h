//===- ShardIndex.h - Where a shard has its samples -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_SHARDINDEX_H
#define TCC_RUNTIME_DATA_RECORDS_SHARDINDEX_H

#include "runtime/data/SampleFile.h"

#include <vector>

namespace tcc::runtime {

/// What the headers of a tar shard say.
struct ShardIndex {
  struct Piece {
    uint64_t offset, size;
    size_t field; ///< of `fields`
  };

  std::vector<std::string> fields;
  std::vector<std::string> names; ///< of samples, without endings
  std::vector<Piece> pieces;      ///< of one sample after the other
  std::vector<size_t> ends;       ///< of each sample among the pieces
};

/// Reads the headers of a shard. Code::BadData where one is damaged, or a
/// sample has a field twice.
Result<ShardIndex> scanShard(const SampleFile &shard);

/// What writeShardIndex has left beside the shard, if the shard is as it was
/// then; else what its headers say. Code::BadData where that is damaged.
Result<ShardIndex> findShardIndex(const SampleFile &shard);

/// Writes an index beside the shard, PATH.tcc-index; its path.
Result<std::string> writeShardIndex(const SampleFile &shard,
                                    const ShardIndex &index);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_SHARDINDEX_H
