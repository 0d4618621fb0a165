#include "runtime/devices/cuda/OpenLibrary.h"

#include "runtime/base/Plugin.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr char kPlugin[] = "libtcc_cuda_libs.so";
static constexpr char kEmulatedPlugin[] = "libtcc_emulated.so";
static constexpr char kForbidden[] = "none";
static constexpr char kSimulated[] = "simulated";

/// Whether a kernel has work of a kind for which `is` is true.
template <typename Is>
static bool hasWork(const format::Program &program, Is is) {
  return program.kernels() &&
         std::any_of(program.kernels()->begin(), program.kernels()->end(),
                     [&](const format::Kernel *kernel) {
                       const format::LibraryWork *work = kernel->library();
                       return work && hasKnownKinds(*work) && is(work->kind());
                     });
}

/// Whether a kernel describes what a library does as formats before 2.2 did, in
/// fields that have no names any more.
static bool hasOldWork(const format::Program &program) {
  constexpr flatbuffers::voffset_t kProduct = 8, kConvolution = 12;
  static_assert(kProduct == format::Kernel::VT_THREADS + 2 &&
                kConvolution == format::Kernel::VT_ALIGNMENTS + 2);
  return program.kernels() &&
         std::any_of(program.kernels()->begin(), program.kernels()->end(),
                     [](const format::Kernel *kernel) {
                       auto *table =
                           reinterpret_cast<const flatbuffers::Table *>(kernel);
                       return table->CheckField(kProduct) ||
                              table->CheckField(kConvolution);
                     });
}

/// What is to say of work that a later format describes, and of old work.
static std::string noteUnknownWork(const format::Program &program) {
  size_t count = 0;
  if (program.kernels())
    count = static_cast<size_t>(std::ranges::count_if(
        *program.kernels(), [](const format::Kernel *kernel) {
          return kernel->library() && !hasKnownKinds(*kernel->library());
        }));
  if (count > 0)
    return concat(count, count == 1 ? " kernel runs" : " kernels run",
                  " without a library, more slowly: the package is "
                  "of a later format than this runtime, which does not know "
                  "what the library would do; update it");
  if (hasOldWork(program))
    return "kernels run without libraries, more slowly: the package's format "
           "is older than 2.2; compile the model again";
  return {};
}

/// Both, of which any may be empty.
static std::string joinNotes(std::string first, std::string_view second) {
  bool isBoth = !first.empty() && !second.empty();
  return concat(first, isBoth ? "; " : "", second);
}

static Result<std::unique_ptr<Library>> open(const LibraryChoice &choice) {
  Result<void *> found = findInPlugin(kPlugin, "tcc_open_cuda_library");
  if (!found.ok())
    return found.takeStatus();
  return std::unique_ptr<Library>(
      reinterpret_cast<OpenLibrary>(*found)(choice));
}

static Status simulate(LibraryChoice &choice) {
  Result<void *> blas = findInPlugin(kEmulatedPlugin, "tcc_emulated_cublaslt");
  if (!blas.ok())
    return blas.takeStatus();
  Result<void *> dnn = findInPlugin(kEmulatedPlugin, "tcc_emulated_cudnn");
  if (!dnn.ok())
    return dnn.takeStatus();
  choice.isSimulated = true;
  choice.simulatedBlas = reinterpret_cast<const CublasLt *(*)()>(*blas)();
  choice.simulatedDnn = reinterpret_cast<const Cudnn *(*)()>(*dnn)();
  return Status();
}

Result<OpenedLibrary> cuda::openLibrary(const Choice &choice,
                                        const format::Program &program) {
  const char *places = std::getenv("TCC_CUDA_LIB");
  std::string_view wanted = places ? places : "";
  bool isSimulated = choice.isEmulated && wanted == kSimulated;
  auto isProduct = [](format::WorkKind kind) {
    return kind == format::WorkKind::product;
  };
  LibraryChoice library{places, hasWork(program, isProduct),
                        hasWork(program, std::not_fn(isProduct))};
  bool isAsked = library.hasProducts || library.hasConvolutions;
  if (wanted == kForbidden || (choice.isEmulated && !isSimulated))
    return OpenedLibrary();
  std::string unknown = noteUnknownWork(program);
  if (!isAsked)
    return OpenedLibrary{nullptr, std::move(unknown)};
  if (isSimulated)
    if (Status status = simulate(library); !status.ok())
      return status;
  auto opened = open(library);
  if (opened.ok()) {
    std::string note = joinNotes(std::move(unknown), (*opened)->note());
    return OpenedLibrary{std::move(*opened), std::move(note)};
  }
  Status status = opened.takeStatus();
  if (isSimulated)
    return status;
  return OpenedLibrary{
      nullptr, joinNotes(std::move(unknown),
                         concat("kernels run without libraries, more slowly: ",
                                status.message()))};
}
