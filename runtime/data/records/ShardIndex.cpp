#include "runtime/data/records/ShardIndex.h"

#include "runtime/base/OutputFile.h"
#include "runtime/base/ParseJson.h"
#include "runtime/data/records/Tar.h"

#include <algorithm>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::json;

// The index is an object of JSON with these keys.
static constexpr const char *kVersion = "version", *kSize = "shard_bytes",
                            *kTime = "shard_modified_ns", *kFields = "fields",
                            *kNames = "names", *kPieces = "pieces",
                            *kEnds = "ends";
static constexpr int kCurrentVersion = 1;
static constexpr size_t kPieceNumbers = 3; // offset, size, field

//===----------------------------------------------------------------------===//
// From headers
//===----------------------------------------------------------------------===//

/// What begins with a dot, or has none, is of no sample.
static size_t findDot(std::string_view name) {
  size_t slash = name.rfind('/');
  size_t begin = slash == name.npos ? 0 : slash + 1;
  size_t dot = name.find('.', begin);
  return dot == begin ? name.npos : dot;
}

static size_t numberOf(std::vector<std::string> &names,
                       const std::string &name) {
  auto found = std::ranges::find(names, name);
  if (found == names.end())
    found = names.insert(names.end(), name);
  return size_t(found - names.begin());
}

Result<ShardIndex> runtime::scanShard(const SampleFile &shard) {
  ShardIndex index;
  Status status = visitTar(shard, [&](const TarMember &member) {
    size_t dot = findDot(member.name);
    if (dot == member.name.npos)
      return Status();
    std::string own = member.name.substr(0, dot);
    std::string field = member.name.substr(dot + 1);
    for (char &c : field)
      if (c >= 'A' && c <= 'Z')
        c = static_cast<char>(c - 'A' + 'a');
    ShardIndex::Piece piece = {member.offset, member.size,
                               numberOf(index.fields, field)};
    if (index.names.empty() || index.names.back() != own) {
      index.ends.push_back(index.pieces.size());
      index.names.push_back(own);
    }
    size_t begin = index.ends.size() > 1 ? index.ends.rbegin()[1] : 0;
    auto pieces = std::span(index.pieces).subspan(begin);
    if (std::ranges::find(pieces, piece.field, &ShardIndex::Piece::field) !=
        pieces.end())
      return makeError(Code::BadData, "'", shard.path(), "' at byte ",
                       member.offset, ": sample '", own, "' has '", field,
                       "' twice");
    index.pieces.push_back(piece);
    index.ends.back() = index.pieces.size();
    return Status();
  });
  if (!status.ok())
    return status;
  return index;
}

//===----------------------------------------------------------------------===//
// From a file
//===----------------------------------------------------------------------===//

static std::string pathOf(const SampleFile &shard) {
  return shard.path() + ".tcc-index";
}

static bool areTexts(const json &list) {
  return list.is_array() && std::ranges::all_of(list, [](const json &each) {
           return each.is_string();
         });
}

static bool areNumbers(const json &list) {
  return list.is_array() && std::ranges::all_of(list, [](const json &each) {
           return each.is_number_unsigned();
         });
}

/// Nothing where a number is not what it can be.
static std::optional<ShardIndex> parseIndex(const json &document,
                                            uint64_t shardBytes) {
  auto get = [&](const char *key) { return document.value(key, json()); };
  json fields = get(kFields), names = get(kNames), pieces = get(kPieces),
       ends = get(kEnds);
  if (!areTexts(fields) || !areTexts(names) || !areNumbers(pieces) ||
      !areNumbers(ends) || ends.size() != names.size() ||
      pieces.size() % kPieceNumbers != 0)
    return std::nullopt;
  ShardIndex index = {fields, names, {}, {}};
  for (size_t i = 0; i < pieces.size(); i += kPieceNumbers) {
    ShardIndex::Piece piece = {pieces[i], pieces[i + 1], pieces[i + 2]};
    if (piece.field >= index.fields.size() || piece.offset > shardBytes ||
        piece.size > shardBytes - piece.offset)
      return std::nullopt;
    index.pieces.push_back(piece);
  }
  size_t last = 0;
  for (const json &end : ends) {
    index.ends.push_back(end);
    if (index.ends.back() <= last)
      return std::nullopt;
    last = index.ends.back();
  }
  return last == index.pieces.size() ? std::optional(std::move(index))
                                     : std::nullopt;
}

Result<ShardIndex> runtime::findShardIndex(const SampleFile &shard) {
  std::string path = pathOf(shard);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return scanShard(shard);
  auto file = SampleFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  std::string text((*file)->size(), '\0');
  if (Status status = (*file)->read(0, std::as_writable_bytes(std::span(text)));
      !status.ok())
    return status;
  json document = parseObject(text).value_or(json());
  bool isKnown = document.is_object() &&
                 document.value(kVersion, json()) == kCurrentVersion;
  if (isKnown && (document.value(kSize, json()) != shard.size() ||
                  document.value(kTime, json()) != shard.modified()))
    return scanShard(shard); // it is of another shard
  auto index = isKnown ? parseIndex(document, shard.size()) : std::nullopt;
  if (!index)
    return makeError(Code::BadData, "'", path,
                     "' is damaged, or of another version: remove it, or write "
                     "it anew by tcc-run data index");
  return std::move(*index);
}

Result<std::string> runtime::writeShardIndex(const SampleFile &shard,
                                             const ShardIndex &index) {
  std::vector<uint64_t> pieces;
  for (const ShardIndex::Piece &piece : index.pieces)
    pieces.insert(pieces.end(), {piece.offset, piece.size, piece.field});
  json document = {{kVersion, kCurrentVersion}, {kSize, shard.size()},
                   {kTime, shard.modified()},   {kFields, index.fields},
                   {kNames, index.names},       {kPieces, pieces},
                   {kEnds, index.ends}};
  std::string text;
  try {
    text = document.dump();
  } catch (const json::type_error &) {
    return makeError(Code::Unsupported, "'", shard.path(),
                     "': an index of names that are no UTF-8 is not supported");
  }
  std::string path = pathOf(shard);
  auto file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  file->write(text);
  if (Status status = file->commit(); !status.ok())
    return status;
  return path;
}
