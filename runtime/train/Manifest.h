//===- Manifest.h - What the files of a checkpoint have ---------*- C++ -*-===//
//
// manifest.json of a checkpoint lists each tensor of the run: name, dtype,
// shape and slices, which are elements [begin, begin + count) in row-major
// order, from byte `offset` of `file` on, with the XXH3-128 of their bytes.
// Slices of a tensor do not overlap.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_TRAIN_MANIFEST_H
#define TCC_RUNTIME_TRAIN_MANIFEST_H

#include "runtime/base/Status.h"
#include "runtime/package/DType.h"
#include "runtime/package/Format.h"
#include "runtime/train/Records.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tcc::runtime {

struct StoredSlice {
  std::string file; ///< beside the manifest
  uint64_t begin, count;
  uint64_t offset;
  std::string digest; ///< as formatDigest writes it
};

struct ListedTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<StoredSlice> slices; ///< in the order of `begin`
};

struct Manifest {
  static constexpr int kVersion = 3;
  /// One digest of all tensors, in the order of their names, in one file, whose
  /// header lists them.
  static constexpr int kOldestVersion = 2;

  int64_t version = kVersion;
  int64_t step = 0, updates = 0, batches = 0;
  std::string program; ///< a fingerprint of the tensors
  nlohmann::ordered_json recipe = nlohmann::ordered_json::object();
  Records records;
  std::vector<ListedTensor> tensors; ///< none in the oldest version
  std::string digest;                ///< of the oldest version
};

std::string formatDigest(const format::Digest &digest);

/// As manifests have it.
nlohmann::ordered_json describe(const EvaluationRecord &record);

/// The keys of a manifest for the records that there are.
nlohmann::ordered_json describe(const Records &records);
/// Reads the records among an object's keys. Fails with Code::BadData.
Result<Records> readRecords(const nlohmann::ordered_json &document);

std::string printManifest(const Manifest &manifest);

/// Reads `path`. Code::BadData where it is none, with the place that is wrong.
/// Where the version is unknown, the version alone is read.
Result<Manifest> readManifest(const std::string &path);

/// Fails (Code::BadData) where it is of a version that is unknown.
Status checkVersion(const Manifest &manifest, const std::string &path);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_MANIFEST_H
