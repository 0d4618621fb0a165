#include "runtime/data/records/TextRecords.h"

#include "runtime/data/records/RecordSource.h"

#include <algorithm>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

static bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

Status TextRecords::index(const SampleFile &file) {
  constexpr uint64_t kBlock = 1 << 20;
  std::string block;
  bool isQuoted = false, isEmpty = true;
  uint64_t line = 0; // begins there
  for (uint64_t at = 0; at < file.size(); at += block.size()) {
    block.resize(std::min(kBlock, file.size() - at));
    if (Status status = file.read(at, std::as_writable_bytes(std::span(block)));
        !status.ok())
      return status;
    for (size_t i = 0; i < block.size(); ++i) {
      char c = block[i];
      if (c == '"' && hasQuotes)
        isQuoted = !isQuoted;
      if (c == '\n' && !isQuoted) {
        line = at + i + 1;
        isEmpty = true;
      } else if (isEmpty && !isBlank(c)) {
        begins.push_back(line);
        isEmpty = false;
      }
    }
    if (!isEmpty && at + block.size() - begins.back() > kLongest)
      return makeError(Code::BadData, "'", file.path(), "' at byte ",
                       begins.back(), ": a line has more than ", kLongest,
                       " bytes");
  }
  return Status();
}

Status TextRecords::add(const std::string &path, std::string *header) {
  auto file = opening.open(path);
  if (!file.ok())
    return file.takeStatus();
  files.push_back({*file, count(), 0});
  if (Status status = index(**file); !status.ok())
    return status;
  files.back().end = count();
  if (!header)
    return Status();
  int64_t first = files.back().first;
  if (first == count())
    return makeError(Code::BadData, "'", path, "' has no line");
  if (Status status = read(first, *header); !status.ok())
    return status;
  begins.erase(begins.begin() + first);
  --files.back().end;
  return Status();
}

const TextRecords::File &TextRecords::fileOf(int64_t record) const {
  return *std::ranges::upper_bound(files, record, {}, &File::end);
}

Status TextRecords::read(int64_t record, std::string &text) const {
  const File &own = fileOf(record);
  uint64_t begin = begins[size_t(record)];
  uint64_t end =
      record + 1 < own.end ? begins[size_t(record) + 1] : own.file->size();
  // What follows may be many blank lines.
  text.resize(std::min(end - begin, kLongest));
  return own.file->read(begin, std::as_writable_bytes(std::span(text)));
}

uint64_t TextRecords::keyOf(int64_t record) const {
  const File &own = fileOf(record);
  return keyOfPlace(own.file->path(), record - own.first);
}

std::string TextRecords::describe(int64_t record) const {
  return concat("'", fileOf(record).file->path(), "' at byte ",
                begins[size_t(record)]);
}

Status TextRecords::readBeside(int64_t record, std::string_view text,
                               std::vector<std::byte> &bytes) const {
  fs::path path = fs::path(text).lexically_normal();
  if (path.empty() || path.is_absolute() || *path.begin() == "..")
    return makeError(Code::BadData, "'", text.substr(0, 64),
                     "' is no path of a file in its folder");
  fs::path whole = fs::path(fileOf(record).file->path()).parent_path() / path;
  std::error_code error;
  if (fs::status(whole, error).type() == fs::file_type::not_found)
    return makeError(Code::BadData, "there is no file '", whole.string(), "'");
  auto file = opening.open(whole.string());
  if (!file.ok())
    return file.takeStatus();
  bytes.resize((*file)->size());
  return (*file)->read(0, bytes);
}
