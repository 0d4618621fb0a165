//===- Format.h - The package container -------------------------*- C++ -*-===//
//
// A package is one file, little-endian, used through mmap:
//
//   FileHeader | SectionEntry[section_count] | sections, each page-aligned
//
// The exec program is a FlatBuffer (Program.fbs); code sections are ELF shared
// objects, or what a device's driver loads; the rest is bytes. This header and
// the schema are all that compiler and runtime have to agree on, but for
// kernels of the emulated device (devices/emulated/EmulatedKernel.h).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_FORMAT_H
#define TCC_RUNTIME_PACKAGE_FORMAT_H

#include <cstdint>

namespace tcc::format {

inline constexpr char kMagic[8] = {'T', 'C', 'C', 'P', 'K', 'G', '\r', '\n'};
/// A reader refuses another major version. What a newer minor version adds it
/// ignores: a package that cannot do without says so (Program.requires).
inline constexpr uint16_t kMajorVersion = 2;
inline constexpr uint16_t kMinorVersion = 5;
/// Section alignment in the file, so that sections can be mapped.
inline constexpr uint64_t kPageSize = 4096;

/// A word of Program.requires: ranks divide variables.
inline constexpr char kDividedWord[] = "divided-variables";

/// A word of Program.requires: variants name the kernels that they have.
inline constexpr char kKernelCodeWord[] = "kernel-code";

/// The input of a training package that weighs the samples of a batch.
inline constexpr char kSampleWeight[] = "sample_weight";

/// XXH3-128 of some bytes, in xxHash's canonical (big-endian) form.
struct Digest {
  uint8_t bytes[16];
  bool operator==(const Digest &) const = default;
};

enum class SectionKind : uint32_t {
  Program = 1,   ///< FlatBuffer tcc.format.Program; exactly one
  Code = 2,      ///< of one variant: ELF image, cubin or PTX
  Weights = 3,   ///< const tensors; at most one
  Options = 4,   ///< JSON: compile options and provenance
  Decisions = 5, ///< JSON: what the compiler decided, and why
};

/// Offset of a kernel that a variant has not.
inline constexpr uint64_t kNoKernel = UINT64_MAX;
/// The most lanes of an entry point: each takes a thread or a stream of its
/// own.
inline constexpr uint32_t kMaxLanes = 16;
/// The most threads of a block.
inline constexpr uint32_t kMaxBlockThreads = 1024;
/// The threads of a warp.
inline constexpr uint32_t kWarpSize = 32;
/// The most shared memory that a block declares, in bytes.
inline constexpr uint32_t kMaxSharedBytes = 48 << 10;

struct FileHeader {
  char magic[8];
  uint16_t majorVersion;
  uint16_t minorVersion;
  uint32_t sectionCount;
  uint64_t fileSize;    ///< bytes; a shorter or longer file is refused
  Digest tableDigest;   ///< of the section table
  uint8_t reserved[24]; ///< zero
};
static_assert(sizeof(FileHeader) == 64);

struct SectionEntry {
  SectionKind kind;
  uint32_t reserved; ///< zero
  uint64_t offset;   ///< from the start of the file; a multiple of kPageSize
  uint64_t size;     ///< bytes
  Digest digest;     ///< of the section; weights: of the per-tensor digests
};
static_assert(sizeof(SectionEntry) == 40);

/// void kernel(void *const *buffers, const int64_t *sizes, int64_t firstTask,
///             int64_t lastTask, void *workerScratch)
/// `buffers` are in the launch's order; tasks [firstTask, lastTask) are run.
/// Scratch, constants, states and variables are kTensorAlignment-aligned; what
/// the caller binds (inputs, outputs) is aligned to its element only.
/// `workerScratch` is kTensorAlignment-aligned, uninitialised and the worker's
/// own; a kernel may not keep anything there between calls.
using KernelFunction = void (*)(void *const *buffers, const int64_t *sizes,
                                int64_t firstTask, int64_t lastTask,
                                void *workerScratch);

} // namespace tcc::format

#endif // TCC_RUNTIME_PACKAGE_FORMAT_H
