#include "runtime/data/ZipEntries.h"

#include "runtime/base/PrintText.h"

#include <algorithm>
#include <limits>
#include <zlib.h>

using namespace tcc;
using namespace tcc::runtime;

using Bytes = std::span<const std::byte>;

static Status checkSum(Bytes bytes, const ZipEntry &entry) {
  auto *data = reinterpret_cast<const Bytef *>(bytes.data());
  if (crc32_z(0, data, bytes.size()) == entry.checksum)
    return Status();
  return makeError(Code::BadData, "entry '", printText(entry.name),
                   "' does not have its checksum");
}

Status runtime::checkStored(const ZipEntry &entry) {
  return entry.isCompressed
             ? makeError(Code::BadData, "entry '", printText(entry.name),
                         "' is compressed")
             : checkSum(entry.stored, entry);
}

/// Exactly as many bytes as `to` has room for.
static bool inflateTo(Bytes bytes, std::span<std::byte> to) {
  if (bytes.size() > std::numeric_limits<uInt>::max() ||
      to.size() > std::numeric_limits<uInt>::max())
    return false;
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  stream.next_in =
      reinterpret_cast<Bytef *>(const_cast<std::byte *>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef *>(to.data());
  stream.avail_out = uInt(to.size());
  int result = inflate(&stream, Z_FINISH);
  bool isWhole =
      result == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  return isWhole;
}

Status runtime::extract(const ZipEntry &entry, std::span<std::byte> to) {
  if (!entry.isCompressed)
    std::ranges::copy(entry.stored, to.begin());
  else if (!inflateTo(entry.stored, to))
    return makeError(Code::BadData, "entry '", printText(entry.name),
                     "' does not decompress");
  return checkSum(to, entry);
}
