// Contexts of the C API.

#include "runtime/api/Handles.h"

#include "runtime/base/ThreadPool.h"
#include "runtime/executor/DLPack.h"
#include "runtime/executor/Variants.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

/// A context for each variant of the model, all of one workspace.
static Status addVariants(std::shared_ptr<const Executable> executable,
                          ContextOptions created, tcc_context &context) {
  auto entries = listVariants(executable->program(), created.entry);
  if (entries.size() > 1) {
    auto workspace = Workspace::create(executable->device(), entries,
                                       {created.runner, created.allocator});
    if (!workspace.ok())
      return workspace.takeStatus();
    created.workspace = std::move(*workspace);
  }
  for (size_t i = 0; i < std::max<size_t>(entries.size(), 1); ++i) {
    created.variant = entries.empty() ? 0 : entries[i]->variant();
    auto made = Context::create(executable, created);
    if (!made.ok())
      return made.takeStatus();
    context.variants.push_back(std::move(*made));
  }
  context.context = context.variants[0].get();
  return Status();
}

tcc_status tcc_context_create(const tcc_program *program,
                              const tcc_context_options *options,
                              tcc_context **context) {
  return guard([&]() -> Status {
    tcc_context_options given = readOptions(options);
    auto result = std::make_unique<tcc_context>();
    const Executable &executable = *program->executable;
    ContextOptions created;
    created.allocator = toAllocator(given.allocator);
    if (given.pool) {
      if (given.pool->threads < 1 || !given.pool->run)
        return Status(Code::Usage, "a thread pool needs at least one thread");
      result->pool = std::make_unique<InjectedPool>(*given.pool);
    } else if (executable.device().isHost()) {
      result->pool = std::make_unique<ThreadPool>(
          given.threads > 0 ? given.threads : defaultThreadCount());
    }
    created.runner = result->pool.get();
    if (Status status = addVariants(program->executable, created, *result);
        !status.ok())
      return status;
    *context = result.release();
    return Status();
  });
}

tcc_status tcc_context_set_variant(tcc_context *context, size_t variant) {
  return guard([&]() -> Status {
    if (variant >= context->variants.size())
      return makeError(Code::Usage, "there is no variant ", variant, " of ",
                       context->variants.size());
    context->context = context->variants[variant].get();
    return Status();
  });
}

tcc_status tcc_context_choose_variant(tcc_context *context,
                                      const tcc_tensor *inputs, size_t count) {
  return guard([&]() -> Status {
    std::vector<TensorView> views;
    for (const tcc_tensor &input : std::span(inputs, count))
      views.push_back({input.data, DType::f32, {input.shape, input.rank}});
    std::vector<const format::Entry *> entries;
    for (const auto &variant : context->variants)
      entries.push_back(&variant->entry());
    auto chosen = chooseVariant(entries, views);
    if (!chosen.ok())
      return chosen.takeStatus();
    auto found = std::ranges::find(entries, *chosen) - entries.begin();
    context->context = context->variants[size_t(found)].get();
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
