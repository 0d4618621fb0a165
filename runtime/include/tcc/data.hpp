//===- tcc/data.hpp - The C++ API of the data loader ------------*- C++ -*-===//
//
// A header-only layer over tcc/data.h. Needs C++17.
//
//   tcc::TrainSession session(program);
//   tcc::Loader loader(session, "data.toml");
//   for (int64_t step = 0; step < 1000; ++step) {
//     loader.bindNext(session);
//     session.step();
//   }
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DATA_HPP
#define TCC_DATA_HPP

#include "tcc/data.h"
#include "tcc/runtime.hpp"

#include <cstdint>

namespace tcc {

/// A tensor of a batch: shape[0] samples, as many for all tensors.
struct LoaderTensor {
  std::string name;
  tcc_dtype dtype;
  std::vector<int64_t> shape;
  tcc_input_role role = {0, -1, INT64_MIN};
  /// The shapes of each size that batches may have, where there are several.
  std::vector<std::vector<int64_t>> variants = {};
};

struct LoaderOptions {
  tcc_loader_phase phase = TCC_LOADER_TRAIN;
  std::optional<uint64_t> seed;      ///< else the session's, or 0
  bool keepsOrder = false;           ///< samples as they lie
  std::vector<std::string> settings; ///< KEY=VALUE of [data]
  /// Keys of [data] as TOML, which hold unless `data` or a setting says
  /// otherwise; else those of the session's recipe.
  std::optional<std::string> plan;
};

/// Samples of your own. The loader's threads call `read` at once, for different
/// samples; it fills a part for each tensor of a batch, and may throw: an Error
/// with TCC_BAD_DATA is a damaged sample.
class SampleSource {
public:
  struct Part {
    void *data;
    size_t bytes;
  };

  virtual ~SampleSource() = default;
  virtual int64_t sampleCount() const = 0;
  virtual void read(int64_t epoch, int64_t number,
                    const std::vector<Part> &parts) const = 0;
  /// The bytes that a sample needs of the largest part of each of `count`
  /// tensors, 0 for all; none where all samples need all of it.
  virtual std::vector<size_t> needs(int64_t /*number*/,
                                    size_t /*count*/) const {
    return {};
  }
};

/// Reads batches ahead. One thread uses it.
class Loader {
public:
  /// `data` is what `tcc-run train --data` takes: a source or a file NAME.toml;
  /// if it is empty, the source of the options' plan.
  Loader(const std::string &data, const std::vector<LoaderTensor> &tensors,
         const LoaderOptions &options = {}) {
    create(tensors, options,
           [&](const tcc_loader_tensor *given, const tcc_loader_options *how,
               tcc_loader **loader) {
             return tcc_loader_open(data.empty() ? nullptr : data.c_str(),
                                    given, tensors.size(), how, loader);
           });
  }
  Loader(std::unique_ptr<const SampleSource> source,
         const std::vector<LoaderTensor> &tensors,
         const LoaderOptions &options = {}) {
    tcc_sample_source own = {sizeof(own), nullptr,    source->sampleCount(),
                             readOwn,     releaseOwn, needsOwn};
    own.user = const_cast<SampleSource *>(source.release());
    create(tensors, options,
           [&](const tcc_loader_tensor *given, const tcc_loader_options *how,
               tcc_loader **loader) {
             return tcc_loader_open_source(&own, given, tensors.size(), how,
                                           loader);
           });
  }
  /// For the inputs of a session's steps, whose shapes are static; with empty
  /// `data` of what the recipe says.
  explicit Loader(const TrainSession &session, const std::string &data = "",
                  const LoaderOptions &options = {})
      : Loader(data, tensorsOf(session), completed(options, session)) {}

  /// The tensors that a session's steps take.
  static std::vector<LoaderTensor> tensorsOf(const TrainSession &session) {
    std::vector<LoaderTensor> tensors(tcc_session_input_count(session.get()));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const tcc_tensor_spec &spec = *tcc_session_input(session.get(), i);
      tensors[i].name = spec.name;
      tensors[i].dtype = spec.dtype;
      tensors[i].shape = shapeOf(spec);
      check(tcc_session_input_role(session.get(), i, &tensors[i].role));
      size_t variants = tcc_session_variant_count(session.get());
      for (size_t variant = 0; variants > 1 && variant < variants; ++variant)
        tensors[i].variants.push_back(
            shapeOf(*tcc_session_variant_input(session.get(), variant, i)));
    }
    return tensors;
  }

  int64_t sampleCount() const { return tcc_loader_sample_count(get()); }
  int64_t batchesPerEpoch() const {
    return tcc_loader_batches_per_epoch(get());
  }

  /// Batch `number` of all epochs, valid until the next call; what is likely to
  /// be asked for next is number + stride.
  const std::vector<tcc_tensor> &read(int64_t number, int64_t stride = 1) {
    check(tcc_loader_read(get(), number, stride, batch.data()));
    return batch;
  }
  /// Binds what `read` reads to the inputs of a session.
  void bind(TrainSession &session, int64_t number, int64_t stride = 1) {
    read(number, stride);
    for (size_t i = 0; i < batch.size(); ++i)
      session.bind(names[i], batch[i]);
  }
  /// Binds the batch that the session's next step takes, of those that its
  /// ranks share.
  void bindNext(TrainSession &session) {
    bind(session, tcc_session_batch_number(session.get()), session.rankCount());
    tcc_session_spare_threads(session.get(), tcc_loader_spared_threads(get()));
  }

  /// Seconds that reading has kept the caller.
  double waitSeconds() const { return tcc_loader_wait_seconds(get()); }
  /// How many damaged samples were skipped, and what is wrong with the next one
  /// of the first ten; empty if there are no more.
  int64_t skippedCount() const { return tcc_loader_skipped_count(get()); }
  std::string nextProblem() {
    const char *problem = tcc_loader_next_problem(get());
    return problem ? problem : "";
  }
  tcc_loader *get() const { return handle.get(); }

private:
  static std::vector<int64_t> shapeOf(const tcc_tensor_spec &spec) {
    std::vector<int64_t> shape;
    for (size_t axis = 0; axis < spec.rank; ++axis)
      shape.push_back(spec.dims[axis].extent);
    return shape;
  }
  static LoaderOptions completed(LoaderOptions options,
                                 const TrainSession &session) {
    if (!options.seed)
      options.seed = tcc_session_seed(session.get());
    if (const char *plan = tcc_session_data(session.get()))
      if (!options.plan)
        options.plan = plan;
    return options;
  }

  template <typename Open>
  void create(const std::vector<LoaderTensor> &tensors,
              const LoaderOptions &options, Open open) {
    std::vector<tcc_loader_tensor> given;
    std::vector<std::vector<const int64_t *>> variants;
    for (const LoaderTensor &tensor : tensors) {
      std::vector<const int64_t *> &shapes = variants.emplace_back();
      for (const std::vector<int64_t> &shape : tensor.variants)
        shapes.push_back(shape.data());
      given.push_back({tensor.name.c_str(), tensor.dtype, tensor.shape.size(),
                       tensor.shape.data(), tensor.role, shapes.size(),
                       shapes.data()});
      names.push_back(tensor.name);
    }
    std::vector<const char *> settings;
    for (const std::string &setting : options.settings)
      settings.push_back(setting.c_str());
    tcc_loader_options how = {sizeof(how),
                              options.phase,
                              options.seed.value_or(0),
                              options.keepsOrder,
                              settings.size(),
                              settings.data(),
                              options.plan ? options.plan->c_str() : nullptr};
    tcc_loader *loader = nullptr;
    check(open(given.data(), &how, &loader));
    handle.reset(loader);
    batch.resize(tensors.size());
  }

  static tcc_status readOwn(void *user, int64_t epoch, int64_t number,
                            void *const *parts, const size_t *bytes,
                            size_t count) {
    try {
      std::vector<SampleSource::Part> places(count);
      for (size_t i = 0; i < count; ++i)
        places[i] = {parts[i], bytes[i]};
      static_cast<const SampleSource *>(user)->read(epoch, number, places);
      return nullptr;
    } catch (const Error &error) {
      return tcc_status_create(error.code(), error.what());
    } catch (const std::exception &error) {
      return tcc_status_create(TCC_INTERNAL, error.what());
    } catch (...) {
      return tcc_status_create(TCC_INTERNAL, "what was thrown is no exception");
    }
  }
  static tcc_status needsOwn(void *user, int64_t number, size_t *bytes,
                             size_t count) {
    try {
      std::vector<size_t> needed =
          static_cast<const SampleSource *>(user)->needs(number, count);
      if (needed.size() != count)
        return tcc_status_create(TCC_USAGE, "the source does not say what a "
                                            "sample needs of each tensor");
      for (size_t i = 0; i < count; ++i)
        bytes[i] = needed[i];
      return nullptr;
    } catch (const Error &error) {
      return tcc_status_create(error.code(), error.what());
    } catch (const std::exception &error) {
      return tcc_status_create(TCC_INTERNAL, error.what());
    }
  }
  static void releaseOwn(void *user) {
    delete static_cast<const SampleSource *>(user);
  }

  struct Release {
    void operator()(tcc_loader *loader) const { tcc_loader_release(loader); }
  };

  std::unique_ptr<tcc_loader, Release> handle;
  std::vector<std::string> names;
  std::vector<tcc_tensor> batch;
};

} // namespace tcc

#endif // TCC_DATA_HPP
