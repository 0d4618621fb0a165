#include "runtime/train/CheckpointFiles.h"

#include "runtime/package/Digest.h"

#include <algorithm>
#include <filesystem>
#include <set>

using namespace tcc;
using namespace tcc::runtime;
using format::StepField;
using format::VariableKind;

static constexpr std::string_view kSharedName = "state";
static constexpr std::string_view kExtension = ".safetensors";

bool runtime::isState(const format::Variable &variable) {
  return variable.kind() != VariableKind::rounded &&
         variable.kind() != VariableKind::partial &&
         variable.field() != StepField::rank &&
         variable.field() != StepField::world;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static StoredTensor describePiece(const LogicalTensor &tensor,
                                  const Piece &piece) {
  if (piece.count == tensor.count)
    return {std::string(tensor.name),
            tensor.dtype,
            {tensor.shape.begin(), tensor.shape.end()},
            {}};
  return {concat(tensor.name, "[", piece.begin, ":", piece.begin + piece.count,
                 "]"),
          tensor.dtype,
          {int64_t(piece.count)},
          {}};
}

/// Packages order their variables differently: files do not.
static std::vector<Piece> listPieces(const Variables &variables, int rank,
                                     bool isDivided) {
  std::vector<Piece> pieces;
  std::span<const LogicalTensor> tensors = variables.tensors();
  for (const Piece &piece : variables.pieces(rank))
    if (const LogicalTensor &tensor = tensors[piece.tensor];
        tensor.isDivided == isDivided &&
        isState(variables.describe(tensor.variable)))
      pieces.push_back(piece);
  std::ranges::sort(pieces, {}, [&](const Piece &piece) {
    return std::pair(tensors[piece.tensor].name, piece.begin);
  });
  return pieces;
}

/// The name of file `number` of `count`, from 1 on; a sole file has no number.
static std::string nameFile(std::string_view name, size_t number,
                            size_t count) {
  char place[32] = "";
  if (count > 1)
    std::snprintf(place, sizeof(place), "-%05zu-of-%05zu", number, count);
  return concat(name, place, kExtension);
}

static std::vector<Shard> makeShards(std::string_view name,
                                     const Variables &variables,
                                     std::span<const Piece> pieces,
                                     uint64_t mostFileBytes) {
  std::vector<StoredTensor> tensors;
  for (const Piece &piece : pieces)
    tensors.push_back(describePiece(variables.tensors()[piece.tensor], piece));
  std::vector<size_t> counts = divideIntoFiles(tensors, mostFileBytes);
  std::vector<Shard> shards;
  size_t begin = 0;
  for (size_t count : counts) {
    auto own = std::span(tensors).subspan(begin, count);
    Shard shard = {nameFile(name, shards.size() + 1, counts.size()),
                   {pieces.begin() + begin, pieces.begin() + begin + count},
                   {own.begin(), own.end()},
                   findOffsets(own)};
    shards.push_back(std::move(shard));
    begin += count;
  }
  return shards;
}

std::vector<Shard> runtime::describeShared(const Variables &variables,
                                           uint64_t mostFileBytes) {
  return makeShards(kSharedName, variables,
                    listPieces(variables, /*rank=*/0, /*isDivided=*/false),
                    mostFileBytes);
}

std::vector<Shard> runtime::describePart(const Variables &variables, int rank,
                                         uint64_t mostFileBytes) {
  return makeShards(concat("rank-", rank), variables,
                    listPieces(variables, rank, /*isDivided=*/true),
                    mostFileBytes);
}

std::string runtime::printIndex(std::span<const Shard> files) {
  nlohmann::json places = nlohmann::json::object(); // by name
  uint64_t bytes = 0;
  for (const Shard &file : files)
    for (const StoredTensor &tensor : file.tensors) {
      bytes += *bytesOf(tensor.dtype, tensor.shape);
      places[tensor.name] = file.file;
    }
  nlohmann::ordered_json document = {{"metadata", {{"total_size", bytes}}},
                                     {"weight_map", std::move(places)}};
  return document.dump(/*indent=*/2) + "\n";
}

Result<std::vector<format::Digest>>
runtime::writeShard(Shard shard, const Variables &variables,
                    const Variables::Snapshot &snapshot,
                    const std::string &folder) {
  std::vector<format::Digest> digests;
  for (size_t i = 0; i < shard.pieces.size(); ++i) {
    const Piece &piece = shard.pieces[i];
    const LogicalTensor &tensor = variables.tensors()[piece.tensor];
    size_t step = traitsOf(tensor.dtype).bytes;
    shard.tensors[i].bytes = snapshot.bytes(tensor.variable)
                                 .subspan(piece.at * step, piece.count * step);
    digests.push_back(digestOf(shard.tensors[i].bytes));
  }
  if (Status status =
          writeSafetensors(concat(folder, "/", shard.file), shard.tensors);
      !status.ok())
    return status;
  return digests;
}

void runtime::listShard(const Shard &shard, const Variables &variables,
                        std::span<const format::Digest> digests,
                        std::map<std::string_view, ListedTensor> &listed) {
  for (size_t i = 0; i < shard.pieces.size(); ++i) {
    const Piece &piece = shard.pieces[i];
    const LogicalTensor &tensor = variables.tensors()[piece.tensor];
    ListedTensor &row = listed[tensor.name];
    row.name = tensor.name;
    row.dtype = tensor.dtype;
    row.shape.assign(tensor.shape.begin(), tensor.shape.end());
    row.slices.push_back({shard.file, piece.begin, piece.count,
                          shard.offsets[i], formatDigest(digests[i])});
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Result<CheckpointFiles> CheckpointFiles::open(const std::string &folder,
                                              Manifest manifest) {
  CheckpointFiles files;
  files.folder = folder;
  files.manifest = std::move(manifest);
  if (files.manifest.version == Manifest::kOldestVersion) {
    if (Status status = files.openOldest(); !status.ok())
      return status;
    return files;
  }
  for (const ListedTensor &tensor : files.manifest.tensors)
    if (Status status = files.openListed(tensor); !status.ok())
      return status;
  return files;
}

Status runtime::checkExists(const std::string &path) {
  std::error_code error;
  // Where the answer is not known, opening the file gives the error.
  bool isMissing = !std::filesystem::exists(path, error) && !error;
  return isMissing ? makeError(Code::BadData, "there is no '", path, "'")
                   : Status();
}

Status CheckpointFiles::openOldest() {
  std::string path = concat(folder, "/", kSharedName, kExtension);
  if (Status status = checkExists(path); !status.ok())
    return status;
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  whole = std::move(*file);
  tensors = makeSources(whole.tensors());
  return Status();
}

Result<std::span<const std::byte>>
CheckpointFiles::map(const std::string &file) {
  if (auto found = files.find(file); found != files.end())
    return found->second.bytes();
  std::string path = concat(folder, "/", file);
  if (Status status = checkExists(path); !status.ok())
    return status;
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped.ok())
    return mapped.takeStatus();
  return files.emplace(file, std::move(*mapped)).first->second.bytes();
}

Status CheckpointFiles::openListed(const ListedTensor &tensor) {
  TensorSource source = {tensor.name, tensor.dtype, tensor.shape, {}};
  uint64_t missing =
      *bytesOf(tensor.dtype, tensor.shape) / traitsOf(tensor.dtype).bytes;
  for (const StoredSlice &slice : tensor.slices) {
    auto bytes = map(slice.file);
    if (!bytes.ok())
      return bytes.takeStatus();
    // The slice lies in the tensor, whose bytes were counted: no overflow.
    uint64_t size = slice.count * traitsOf(tensor.dtype).bytes;
    if (slice.offset > bytes->size() || size > bytes->size() - slice.offset)
      return makeError(Code::BadData, "'", folder, "/", slice.file, "' has ",
                       bytes->size(), " bytes, too few for tensor '",
                       tensor.name, "' of the manifest");
    source.parts.push_back(
        {slice.begin, slice.count, bytes->subspan(slice.offset, size)});
    missing -= slice.count; // which do not overlap
  }
  if (missing > 0)
    return makeError(Code::BadData, "'", folder, "' lacks ", missing,
                     " elements of tensor '", tensor.name, "'");
  tensors.push_back(std::move(source));
  return Status();
}

Status CheckpointFiles::verifyOldest() const {
  DigestStream digest;
  for (const StoredTensor &tensor : whole.tensors()) // by name
    digest.update(tensor.bytes);
  if (manifest.digest == formatDigest(digest.finish()))
    return Status();
  return makeError(Code::BadData, "'", folder, "/", kSharedName, kExtension,
                   "' is damaged: its digest is not the manifest's");
}

Status CheckpointFiles::verify(const TensorSource &source,
                               const TensorPart &part) const {
  const StoredSlice &slice = manifest.tensors[&source - tensors.data()]
                                 .slices[&part - source.parts.data()];
  if (slice.digest == formatDigest(digestOf(part.bytes)))
    return Status();
  return makeError(Code::BadData, "'", folder, "/", slice.file,
                   "' is damaged: the digest of tensor '", source.name,
                   "' is not the manifest's");
}

Status CheckpointFiles::verify() const {
  if (manifest.version == Manifest::kOldestVersion)
    return verifyOldest();
  for (const TensorSource &source : tensors)
    for (const TensorPart &part : source.parts)
      if (Status status = verify(source, part); !status.ok())
        return status;
  return Status();
}

Status CheckpointFiles::verify(std::span<const TensorMatch> matches) const {
  if (manifest.version == Manifest::kOldestVersion)
    return verifyOldest();
  std::set<const TensorPart *> verified;
  for (const TensorMatch &match : matches)
    for (const Piece &piece : match.pieces)
      for (const Overlap &overlap : findOverlaps(piece, *match.source))
        if (verified.insert(&overlap.part).second)
          if (Status status = verify(*match.source, overlap.part); !status.ok())
            return status;
  return Status();
}
