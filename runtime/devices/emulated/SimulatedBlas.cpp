#include "runtime/devices/emulated/SimulatedBlas.h"

#include "runtime/devices/emulated/DriverCalls.h"
#include "runtime/devices/emulated/MatrixMultiplier.h"

#include <cstring>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

namespace {

/// A description of any kind: the bytes of each attribute.
struct Description {
  std::map<int, std::vector<char>> attributes;
};

BlasError setAttribute(Description &description, int attribute,
                       const void *value, size_t bytes) {
  const char *from = static_cast<const char *>(value);
  description.attributes[attribute].assign(from, from + bytes);
  return kBlasSuccess;
}

/// What was not set is zero.
BlasError getAttribute(Description &description, int attribute, void *value,
                       size_t bytes, size_t *written) {
  std::vector<char> &stored = description.attributes[attribute];
  stored.resize(bytes);
  std::memcpy(value, stored.data(), bytes);
  if (written)
    *written = bytes;
  return kBlasSuccess;
}

template <typename Handle> BlasError create(Handle *handle) {
  *handle = toHandle<Handle>(new Description);
  return kBlasSuccess;
}
template <typename Handle> BlasError destroy(Handle handle) {
  delete &as<Description>(handle);
  return kBlasSuccess;
}
template <typename Handle>
BlasError set(Handle handle, int attribute, const void *value, size_t bytes) {
  return setAttribute(as<Description>(handle), attribute, value, bytes);
}
template <typename Handle>
BlasError get(Handle handle, int attribute, void *value, size_t bytes,
              size_t *written) {
  return getAttribute(as<Description>(handle), attribute, value, bytes,
                      written);
}

BlasError createProduct(ProductHandle *product, int compute, int) {
  create(product);
  int32_t type = compute;
  uint32_t epilogue = kEpilogueDefault;
  set(*product, kProductCompute, &type, sizeof(type));
  return set(*product, kProductEpilogue, &epilogue, sizeof(epilogue));
}

BlasError createLayout(LayoutHandle *layout, int type, uint64_t rows,
                       uint64_t columns, int64_t leading) {
  create(layout);
  int32_t batch = 1;
  set(*layout, kLayoutType, &type, sizeof(type));
  set(*layout, kLayoutRows, &rows, sizeof(rows));
  set(*layout, kLayoutColumns, &columns, sizeof(columns));
  set(*layout, kLayoutLeading, &leading, sizeof(leading));
  return set(*layout, kLayoutBatch, &batch, sizeof(batch));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Whose functions read descriptions back.
CublasLt table;

/// An algorithm holds the alignments that it was chosen for, of a, b, c and d,
/// and which of two it is. They differ in what they take by the clock.
struct Promise {
  uint64_t alignments[4];
  uint64_t way;
};
constexpr int kWays = 2;

template <typename T>
void readBack(ProductHandle product, int attribute, T &value) {
  table.matmulDescGetAttribute(product, attribute, &value, sizeof(value),
                               nullptr);
}

BlasMatrix readLayout(LayoutHandle layout) {
  BlasMatrix matrix;
  auto read = [&](int attribute, auto &value) {
    table.matrixLayoutGetAttribute(layout, attribute, &value, sizeof(value),
                                   nullptr);
  };
  read(kLayoutType, matrix.type);
  read(kLayoutRows, matrix.rows);
  read(kLayoutColumns, matrix.columns);
  read(kLayoutLeading, matrix.leading);
  read(kLayoutBatch, matrix.batch);
  read(kLayoutBatchStride, matrix.batchStride);
  return matrix;
}

BlasProduct readProduct(ProductHandle handle, LayoutHandle a, LayoutHandle b,
                        LayoutHandle c, LayoutHandle d) {
  BlasProduct product;
  readBack(handle, kProductCompute, product.compute);
  readBack(handle, kProductTransposeA, product.transposeA);
  readBack(handle, kProductTransposeB, product.transposeB);
  readBack(handle, kProductEpilogue, product.epilogue);
  readBack(handle, kProductBias, product.bias);
  readBack(handle, kProductSum, product.sum);
  readBack(handle, kProductSumLeading, product.sumLeading);
  product.a = readLayout(a);
  product.b = readLayout(b);
  product.c = readLayout(c);
  product.d = readLayout(d);
  return product;
}

BlasError getHeuristic(BlasHandle, ProductHandle handle, LayoutHandle a,
                       LayoutHandle b, LayoutHandle c, LayoutHandle d,
                       PreferenceHandle preference, int requested,
                       BlasHeuristic *results, int *returned) {
  *returned = 0;
  if (!checkProduct(readProduct(handle, a, b, c, d)).ok() || requested < 1)
    return kBlasInvalidValue;
  Promise promise = {};
  for (int i = 0; i < 4; ++i) {
    uint32_t alignment = 0;
    table.matmulPreferenceGetAttribute(preference, kAlignmentOfA + i,
                                       &alignment, sizeof(alignment), nullptr);
    promise.alignments[i] = alignment;
  }
  *returned = std::min(requested, kWays);
  for (int i = 0; i < *returned; ++i) {
    promise.way = i;
    results[i] = BlasHeuristic();
    std::memcpy(results[i].algorithm.data, &promise, sizeof(promise));
  }
  return kBlasSuccess;
}

Status checkPlace(const char *name, const void *place, size_t bytes,
                  uint64_t alignment) {
  auto address = reinterpret_cast<uint64_t>(place);
  if (alignment == 0 || address % alignment != 0)
    return makeError(Code::Device, "matrix ", name,
                     " is less aligned than its preference says");
  return simulator().memory.checkDevice(address, bytes);
}

Status checkPlaces(const BlasProduct &product, const BlasPlaces &places,
                   const Promise &promise) {
  if (Status status = checkProduct(product); !status.ok())
    return status;
  Status status =
      checkPlace("a", places.a, extentOf(product.a), promise.alignments[0]);
  if (status.ok())
    status =
        checkPlace("b", places.b, extentOf(product.b), promise.alignments[1]);
  if (status.ok())
    status =
        checkPlace("c", places.c, extentOf(product.c), promise.alignments[2]);
  if (status.ok())
    status =
        checkPlace("d", places.d, extentOf(product.d), promise.alignments[3]);
  if (size_t count = countBias(product); status.ok() && count > 0)
    status =
        simulator().memory.checkDevice(reinterpret_cast<uint64_t>(product.bias),
                                       count * bytesOf(product.d.type));
  if (status.ok() && product.epilogue & kEpilogueSum)
    status = checkPlace("sum", product.sum, extentOf(sumOf(product)), 16);
  return status;
}

double readScale(const void *scale, int32_t compute) {
  return compute == kCompute64F ? *static_cast<const double *>(scale)
                                : *static_cast<const float *>(scale);
}

BlasError matmul(BlasHandle, ProductHandle handle, const void *alpha,
                 const void *a, LayoutHandle layoutA, const void *b,
                 LayoutHandle layoutB, const void *beta, const void *c,
                 LayoutHandle layoutC, void *d, LayoutHandle layoutD,
                 const BlasAlgorithm *algorithm, void *, size_t,
                 StreamHandle stream) {
  BlasProduct product = readProduct(handle, layoutA, layoutB, layoutC, layoutD);
  product.alpha = readScale(alpha, product.compute);
  product.beta = readScale(beta, product.compute);
  BlasPlaces places{a, b, c, d};
  Promise promise;
  std::memcpy(&promise, algorithm->data, sizeof(promise));
  return call([&] {
    Operation operation{Operation::Call};
    operation.name = "product";
    operation.microseconds =
        promise.way == 0 ? kFirstWayMicroseconds : kSecondWayMicroseconds;
    operation.call = [=](double &) {
      Status status = checkPlaces(product, places, promise);
      if (status.ok())
        multiply(product, places);
      return status;
    };
    return simulator().enqueue(as<Stream>(stream), std::move(operation));
  });
}

/// Adds the calls that need a device.
void addDeviceCalls(CublasLt &table) {
  table.create = create<BlasHandle>;
  table.destroy = destroy<BlasHandle>;
  table.getVersion = []() -> size_t { return 0; };
  table.getStatusString = [](BlasError) {
    return getState().failure.empty() ? "an error" : getState().failure.c_str();
  };
  table.matmulAlgoGetHeuristic = getHeuristic;
  table.matmul = matmul;
}

} // namespace

const CublasLt *tcc_emulated_cublaslt_with(const CublasLt *real) {
  table = *real;
  addDeviceCalls(table);
  return &table;
}

const CublasLt *tcc_emulated_cublaslt() {
  CublasLt own = {};
  own.matmulDescCreate = createProduct;
  own.matmulDescDestroy = destroy<ProductHandle>;
  own.matmulDescSetAttribute = set<ProductHandle>;
  own.matmulDescGetAttribute = get<ProductHandle>;
  own.matrixLayoutCreate = createLayout;
  own.matrixLayoutDestroy = destroy<LayoutHandle>;
  own.matrixLayoutSetAttribute = set<LayoutHandle>;
  own.matrixLayoutGetAttribute = get<LayoutHandle>;
  own.matmulPreferenceCreate = create<PreferenceHandle>;
  own.matmulPreferenceDestroy = destroy<PreferenceHandle>;
  own.matmulPreferenceSetAttribute = set<PreferenceHandle>;
  own.matmulPreferenceGetAttribute = get<PreferenceHandle>;
  return tcc_emulated_cublaslt_with(&own);
}
