// The plugin's entry: products by cuBLASLt, convolutions by cuDNN. Either may
// be missing.

#include "runtime/devices/libraries/BlasLibrary.h"
#include "runtime/devices/libraries/CudnnLibrary.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

namespace {

class Libraries final : public Library {
public:
  explicit Libraries(const LibraryChoice &choice);

  std::string_view name() const override { return label; }
  std::string_view note() const override { return missing; }

  Result<std::unique_ptr<LibraryPlan>> plan(const LibraryWork &work,
                                            void *workspace, size_t bytes,
                                            size_t first) override {
    if (work.kind == format::WorkKind::product)
      return blas ? blas->plan(work, workspace, bytes, first)
                  : std::unique_ptr<LibraryPlan>();
    return dnn ? dnn->plan(work, workspace, bytes, first)
               : std::unique_ptr<LibraryPlan>();
  }

private:
  template <typename Part>
  void take(Result<std::unique_ptr<Part>> opened, std::string_view work,
            std::string_view called, std::unique_ptr<Part> &part);

  std::unique_ptr<BlasLibrary> blas;
  std::unique_ptr<CudnnLibrary> dnn;
  std::string label, missing;
};

} // namespace

/// The table to call: the simulated one where that is wanted.
template <typename Table>
static Result<const Table *>
choose(const LibraryChoice &choice, const Table *simulated,
       Result<const Table *> (*find)(const char *places)) {
  if (!choice.isSimulated)
    return find(choice.places);
  if (!simulated)
    return Status(Code::Device, "it is not simulated");
  return simulated;
}

template <typename Part, typename Table>
static Result<std::unique_ptr<Part>> open(Result<const Table *> table) {
  if (!table.ok())
    return table.takeStatus();
  return Part::open(**table);
}

/// Keeps what could be opened, and notes what could not.
template <typename Part>
void Libraries::take(Result<std::unique_ptr<Part>> opened,
                     std::string_view work, std::string_view called,
                     std::unique_ptr<Part> &part) {
  if (opened.ok()) {
    part = std::move(*opened);
    label += concat(label.empty() ? "" : ", ", called, " ", part->version());
    return;
  }
  missing += concat(missing.empty() ? "" : "; ", work, " run without ", called,
                    ", more slowly: ", opened.takeStatus().message());
}

Libraries::Libraries(const LibraryChoice &choice) {
  if (choice.hasProducts)
    take(open<BlasLibrary>(choose(choice, choice.simulatedBlas, findCublasLt)),
         "products", "cuBLASLt", blas);
  if (choice.hasConvolutions)
    take(open<CudnnLibrary>(choose(choice, choice.simulatedDnn, findCudnn)),
         "convolutions", "cuDNN", dnn);
}

extern "C" __attribute__((visibility("default"))) Library *
tcc_open_cuda_library(const LibraryChoice &choice) {
  return new Libraries(choice);
}
