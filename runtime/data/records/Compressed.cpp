#include "runtime/data/records/Compressed.h"

#include "runtime/base/FileCalls.h"

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <vector>
#include <zstd.h>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

namespace {

struct FreeStream {
  void operator()(ZSTD_DStream *stream) const { ZSTD_freeDStream(stream); }
};

/// One file that is decompressed to another.
class Decompression {
public:
  explicit Decompression(const SampleFile &file) : file(file) {}
  ~Decompression() {
    if (target >= 0)
      close(target);
  }
  Decompression(const Decompression &) = delete;
  Decompression &operator=(const Decompression &) = delete;

  Result<std::shared_ptr<const SampleFile>> run();

private:
  template <typename... Parts> Status fail(const Parts &...parts) const {
    return makeError(Code::BadData, "'", file.path(), "': ", parts...);
  }
  Status failToWrite() const {
    return makeError(Code::Io, "cannot decompress '", file.path(), "' to '",
                     folder, "': ", std::strerror(errno));
  }
  Status openTarget();
  Status decompress(std::span<std::byte> block);
  Status write(std::span<const std::byte> bytes);

  const SampleFile &file;
  std::string folder;
  int target = -1;
  uint64_t written = 0;
  std::unique_ptr<ZSTD_DStream, FreeStream> stream{ZSTD_createDStream()};
  std::vector<std::byte> output = std::vector<std::byte>(ZSTD_DStreamOutSize());
  size_t left = 0; ///< nonzero: a frame is not at its end
};

} // namespace

/// It has no name, and is gone with the process.
Status Decompression::openTarget() {
  std::error_code error;
  folder = fs::temp_directory_path(error).string();
  if (error)
    return makeError(
        Code::Io, "there is no folder for temporary files: ", error.message());
  target = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (target >= 0)
    return Status();
  std::string name = folder + "/tcc-XXXXXX"; // not every file system can
  target = mkostemp(name.data(), O_CLOEXEC);
  if (target < 0)
    return failToWrite();
  unlink(name.c_str());
  return Status();
}

Status Decompression::write(std::span<const std::byte> bytes) {
  constexpr uint64_t kMostTimes = 64, kAlways = uint64_t(1) << 30;
  written += bytes.size();
  if (written > kAlways && written / kMostTimes > file.size())
    return fail("it becomes more than ", kMostTimes, " times as large");
  while (!bytes.empty()) {
    ssize_t count =
        io::retry([&] { return ::write(target, bytes.data(), bytes.size()); });
    if (count < 0)
      return failToWrite();
    bytes = bytes.subspan(size_t(count));
  }
  return Status();
}

Status Decompression::decompress(std::span<std::byte> block) {
  ZSTD_inBuffer input = {block.data(), block.size(), 0};
  for (bool isFull = false; input.pos < input.size || isFull;) {
    ZSTD_outBuffer to = {output.data(), output.size(), 0};
    left = ZSTD_decompressStream(stream.get(), &to, &input);
    if (ZSTD_isError(left))
      return fail("it is no file of zstd: ", ZSTD_getErrorName(left));
    if (Status status = write(std::span(output).first(to.pos)); !status.ok())
      return status;
    isFull = to.pos == output.size();
  }
  return Status();
}

Result<std::shared_ptr<const SampleFile>> Decompression::run() {
  if (!stream)
    return Status(Code::OutOfMemory, "no memory to decompress");
  if (Status status = openTarget(); !status.ok())
    return status;
  std::vector<std::byte> block(ZSTD_DStreamInSize());
  for (uint64_t at = 0; at < file.size(); at += block.size()) {
    block.resize(std::min<uint64_t>(block.size(), file.size() - at));
    if (Status status = file.read(at, block); !status.ok())
      return status;
    if (Status status = decompress(block); !status.ok())
      return status;
  }
  if (left != 0)
    return fail("it ends within a frame of zstd");
  return SampleFile::adopt(file.path(), std::exchange(target, -1), written);
}

Result<std::shared_ptr<const SampleFile>>
runtime::openDecompressed(const std::string &path, const Files &files) {
  auto file = files.open(path);
  if (!file.ok() || !(path.ends_with(".zst") || path.ends_with(".zstd")))
    return file;
  return Decompression(**file).run();
}
