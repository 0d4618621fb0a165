//===- Handles.h - What the C API's handles point to ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_API_HANDLES_H
#define TCC_RUNTIME_API_HANDLES_H

#include "runtime/api/Guard.h"
#include "runtime/api/SavesBeside.h"
#include "runtime/executor/Context.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/train/Session.h"

struct tcc_status_s {
  tcc_code code;
  std::string message;
};

struct tcc_package {
  std::shared_ptr<const tcc::runtime::Package> package;
};

struct tcc_program {
  /// A spec and the dimensions it points to.
  struct Spec {
    tcc_tensor_spec spec;
    std::vector<tcc_dim> dims;
  };

  std::shared_ptr<const tcc::runtime::Executable> executable;
  /// The inputs and outputs of one variant.
  struct Signature {
    std::vector<Spec> inputs, outputs;
  };
  std::vector<Signature> variants; ///< at least one
};

/// An embedder's pool behind the interface that the executor uses.
class InjectedPool final : public tcc::runtime::TaskRunner {
public:
  explicit InjectedPool(const tcc_thread_pool &pool) : pool(pool) {}
  int threads() const override { return pool.threads; }
  void run(int64_t tasks, int64_t grain, tcc::runtime::TaskFunction function,
           void *argument) override {
    pool.run(pool.user, tasks, grain, function, argument);
  }

private:
  tcc_thread_pool pool;
};

struct tcc_context {
  std::unique_ptr<tcc::runtime::TaskRunner> pool; ///< outlives the contexts
  std::vector<std::unique_ptr<tcc::runtime::Context>> variants;
  tcc::runtime::Context *context; ///< one of them
};

struct tcc_session {
  std::unique_ptr<InjectedPool> pool;                ///< outlives the session
  std::unique_ptr<tcc::runtime::Communicator> ranks; ///< likewise; or null
  std::unique_ptr<tcc::runtime::TrainingSession> session;
  std::unique_ptr<tcc::runtime::SavesBeside> saves; ///< or null; ends before it
  /// The inputs of a training step, of each variant; none without steps.
  std::vector<std::vector<tcc_program::Spec>> variants;
  std::vector<tcc::runtime::TensorView> batch;
  std::string path, passedOver; ///< what calls returned last
};

namespace tcc::runtime {

/// The inputs or outputs of an entry point.
std::vector<tcc_program::Spec> describeSpecs(
    const format::Program &program,
    const flatbuffers::Vector<flatbuffers::Offset<format::TensorSpec>> &specs);

Allocator toAllocator(const tcc_allocator *allocator);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_API_HANDLES_H
