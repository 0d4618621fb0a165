// Contexts of the C API.

#include "runtime/api/Handles.h"

#include "runtime/executor/DLPack.h"

using namespace tcc;
using namespace tcc::runtime;

tcc_status tcc_context_create(const tcc_program *program,
                              const tcc_context_options *options,
                              tcc_context **context) {
  return guard([&]() -> Status {
    tcc_context_options given = readOptions(options);
    auto result = std::make_unique<tcc_context>();
    ContextOptions created;
    created.threads = given.threads;
    created.allocator = toAllocator(given.allocator);
    if (given.pool) {
      if (given.pool->threads < 1 || !given.pool->run)
        return Status(Code::Usage, "a thread pool needs at least one thread");
      result->pool = std::make_unique<InjectedPool>(*given.pool);
      created.runner = result->pool.get();
    }
    auto made = Context::create(program->executable, created);
    if (!made.ok())
      return made.takeStatus();
    result->context = std::move(*made);
    *context = result.release();
    return Status();
  });
}

void tcc_context_release(tcc_context *context) { delete context; }

tcc_status tcc_context_bind_input(tcc_context *context, size_t index,
                                  const tcc_tensor *tensor) {
  return guard([&]() -> Status {
    std::optional<DType> dtype = toDType(tensor->dtype);
    if (!dtype)
      return makeError(Code::Usage, "input ", index, " has an unknown dtype ",
                       int(tensor->dtype));
    return context->context->bindInput(
        index, {tensor->data, *dtype, {tensor->shape, tensor->rank}});
  });
}

tcc_status tcc_context_bind_output(tcc_context *context, size_t index,
                                   void *data, size_t bytes) {
  return guard(
      [&] { return context->context->bindOutput(index, data, bytes); });
}

/// A DLManagedTensor begins with its DLTensor.
static Result<TensorView> viewOf(const DLManagedTensor *tensor) {
  return dlpack::viewOf(*reinterpret_cast<const dlpack::Tensor *>(tensor));
}

tcc_status tcc_context_bind_input_dlpack(tcc_context *context, size_t index,
                                         const DLManagedTensor *tensor) {
  return guard([&]() -> Status {
    Result<TensorView> view = viewOf(tensor);
    if (!view.ok())
      return view.takeStatus();
    return context->context->bindInput(index, *view);
  });
}

tcc_status tcc_context_bind_output_dlpack(tcc_context *context, size_t index,
                                          const DLManagedTensor *tensor) {
  return guard([&]() -> Status {
    Result<TensorView> view = viewOf(tensor);
    if (!view.ok())
      return view.takeStatus();
    return context->context->bindOutput(index, *view);
  });
}

tcc_status tcc_context_set_dim(tcc_context *context, const char *name,
                               int64_t value) {
  return guard([&] { return context->context->setDim(name, value); });
}

tcc_status tcc_context_run(tcc_context *context) {
  return guard([&] { return context->context->run(); });
}

tcc_status tcc_context_set_stream(tcc_context *context, void *stream) {
  return guard([&] { return context->context->setStream(stream); });
}

tcc_status tcc_context_start(tcc_context *context) {
  return guard([&] { return context->context->start(); });
}

tcc_status tcc_context_finish(tcc_context *context) {
  return guard([&] { return context->context->finish(); });
}

tcc_status tcc_context_output(tcc_context *context, size_t index,
                              tcc_tensor *tensor) {
  return guard([&]() -> Status {
    if (index >= context->context->outputCount())
      return makeError(Code::Usage, "there is no output ", index, " of ",
                       context->context->outputCount());
    if (!context->context->hasOutputs())
      return makeError(Code::Usage, "output ", index,
                       " has no value: the last call was no successful run");
    if (Status status = context->context->fetchState(index); !status.ok())
      return status;
    TensorView view = context->context->output(index);
    *tensor = {view.data, static_cast<tcc_dtype>(view.dtype), view.shape.size(),
               view.shape.data()};
    return Status();
  });
}

int32_t tcc_context_output_device(const tcc_context *context, size_t index) {
  return index < context->context->outputCount()
             ? context->context->output(index).device
             : -1;
}

void tcc_context_reset_state(tcc_context *context) {
  (void)context->context->finish(); // a run that is under way, if there is one
  // A device that fails here fails the next run, too.
  (void)context->context->resetState();
}

uint64_t tcc_context_planned_bytes(const tcc_context *context) {
  return context->context->planned().total();
}
