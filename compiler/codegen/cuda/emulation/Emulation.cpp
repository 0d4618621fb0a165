#include "compiler/codegen/cuda/emulation/Emulation.h"
#include "compiler/codegen/cpu/object/Library.h"
#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include "compiler/codegen/cuda/nvvm/DeviceModule.h"
#include "runtime/devices/emulated/EmulatedKernel.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/ReplaceConstant.h"
#include <cstddef>

using namespace mlir;
using namespace tcc;
using namespace tcc::cuda;
using emulated::AccessKind;
using emulated::EmulatedCalls;
using emulated::EmulatedThread;
using emulated::PairKind;
using emulated::ShuffleMode;

/// Bytes of a vector register: a thread's code is scalar.
static constexpr int64_t kVectorBytes = 32;

namespace {

/// Turns one kernel into a function with the emulator's calling convention.
class KernelRewriter {
public:
  KernelRewriter(llvm::Function &kernel, bool isChecked)
      : kernel(kernel), b(kernel.getContext()), isChecked(isChecked) {}

  llvm::Error rewrite();

private:
  using Value = llvm::Value;

  void moveBody();
  void placeSharedMemory();
  void announceAccess(llvm::Instruction &instruction);
  /// What `intrinsic` is in the emulation; null if there is no such thing.
  Value *emulate(llvm::IntrinsicInst &intrinsic);
  Value *emulateShuffle(llvm::IntrinsicInst &shuffle, ShuffleMode mode);
  Value *emulateVote(llvm::IntrinsicInst &vote);
  Value *emulateProduct(llvm::IntrinsicInst &product, PairKind kind);
  /// `count` words of the thread's own, in the entry block.
  Value *allocateWords(unsigned count);

  /// A field of the thread, which does not change.
  Value *readThread(size_t offset, llvm::Type *type);
  Value *readThread(size_t offset) {
    return readThread(offset, b.getInt32Ty());
  }
  /// Calls the function whose pointer stands at `offset` of EmulatedCalls.
  Value *call(size_t offset, llvm::Type *result, ArrayRef<Value *> arguments);
  Value *readConstant(Value *pointer, size_t offset, llvm::Type *type);

  llvm::Function &kernel;
  llvm::Function *function = nullptr; ///< the rewritten kernel
  llvm::IRBuilder<> b;
  bool isChecked;
  Value *productWords = nullptr, *productSums = nullptr; ///< once they are used
};

} // namespace

llvm::Value *KernelRewriter::readConstant(Value *pointer, size_t offset,
                                          llvm::Type *type) {
  Value *address = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), pointer, offset);
  llvm::LoadInst *load = b.CreateLoad(type, address);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                    llvm::MDNode::get(b.getContext(), {}));
  return load;
}

llvm::Value *KernelRewriter::readThread(size_t offset, llvm::Type *type) {
  return readConstant(function->getArg(0), offset, type);
}

llvm::Value *KernelRewriter::call(size_t offset, llvm::Type *result,
                                  ArrayRef<Value *> arguments) {
  Value *calls = readThread(offsetof(EmulatedThread, calls), b.getPtrTy());
  Value *callee = readConstant(calls, offset, b.getPtrTy());
  SmallVector<Value *> operands = {function->getArg(0)};
  SmallVector<llvm::Type *> types = {b.getPtrTy()};
  for (Value *argument : arguments) {
    operands.push_back(argument);
    types.push_back(argument->getType());
  }
  auto *type = llvm::FunctionType::get(result, types, /*isVarArg=*/false);
  return b.CreateCall(type, callee, operands);
}

/// Moves the kernel's blocks to a function that finds its parameters where
/// cuLaunchKernel has them.
void KernelRewriter::moveBody() {
  auto *type = llvm::FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}, /*isVarArg=*/false);
  function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                    "", kernel.getParent());
  function->takeName(&kernel);
  function->addParamAttr(0, llvm::Attribute::NonNull);
  function->addParamAttr(0, llvm::Attribute::getWithDereferenceableBytes(
                                b.getContext(), sizeof(EmulatedThread)));
  function->splice(function->end(), &kernel);
  b.SetInsertPoint(&function->getEntryBlock(),
                   function->getEntryBlock().getFirstInsertionPt());
  for (llvm::Argument &argument : kernel.args()) {
    Value *address =
        readConstant(function->getArg(1), argument.getArgNo() * sizeof(void *),
                     b.getPtrTy());
    Value *value = readConstant(address, 0, argument.getType());
    argument.replaceAllUsesWith(value);
    if (isChecked && argument.getParamAlign())
      call(offsetof(EmulatedCalls, parameter), b.getVoidTy(),
           {b.getInt32(argument.getArgNo()), value,
            b.getInt32(argument.getParamAlign()->value())});
  }
}

/// Gives the globals of shared memory places in the block's.
void KernelRewriter::placeSharedMemory() {
  const llvm::DataLayout &layout = kernel.getParent()->getDataLayout();
  SmallVector<llvm::Constant *> globals;
  SmallVector<uint64_t> offsets;
  uint64_t bytes = 0;
  for (llvm::GlobalVariable &global : kernel.getParent()->globals()) {
    if (global.getAddressSpace() != kSharedSpace)
      continue;
    bytes = llvm::alignTo(bytes, global.getAlign().valueOrOne());
    globals.push_back(&global);
    offsets.push_back(bytes);
    bytes += layout.getTypeAllocSize(global.getValueType());
  }
  if (globals.empty())
    return;
  llvm::convertUsersOfConstantsToInstructions(globals, function);
  b.SetInsertPoint(&function->getEntryBlock(),
                   function->getEntryBlock().getFirstInsertionPt());
  Value *base = call(offsetof(EmulatedCalls, sharedMemory), b.getPtrTy(),
                     {b.getInt32(bytes)});
  for (auto [global, offset] : llvm::zip_equal(globals, offsets)) {
    Value *address = b.CreateConstGEP1_64(b.getInt8Ty(), base, offset);
    address = b.CreateAddrSpaceCast(address, global->getType());
    global->replaceUsesWithIf(address, [&](llvm::Use &use) {
      auto *user = dyn_cast<llvm::Instruction>(use.getUser());
      return user && user->getFunction() == function;
    });
  }
}

/// Whether only one thread sees what `pointer` points to, or none writes it.
static bool isPrivate(const llvm::Value *pointer) {
  const llvm::Value *object = llvm::getUnderlyingObject(pointer);
  if (auto *global = dyn_cast<llvm::GlobalVariable>(object))
    return global->isConstant();
  return isa<llvm::AllocaInst>(object);
}

/// What an instruction does to memory that other threads see.
struct MemoryAccess {
  llvm::Value *pointer = nullptr; ///< null if it does nothing
  llvm::Type *type = nullptr;
  llvm::Align alignment;
  AccessKind kind = AccessKind::write;
};

static MemoryAccess getAccess(llvm::Instruction &instruction) {
  MemoryAccess access;
  if (auto *load = dyn_cast<llvm::LoadInst>(&instruction))
    access = {load->getPointerOperand(), load->getType(), load->getAlign(),
              AccessKind::read};
  else if (auto *store = dyn_cast<llvm::StoreInst>(&instruction))
    access = {store->getPointerOperand(), store->getValueOperand()->getType(),
              store->getAlign()};
  else if (auto *update = dyn_cast<llvm::AtomicRMWInst>(&instruction))
    access = {update->getPointerOperand(), update->getType(),
              update->getAlign()};
  else if (auto *swap = dyn_cast<llvm::AtomicCmpXchgInst>(&instruction))
    access = {swap->getPointerOperand(), swap->getNewValOperand()->getType(),
              swap->getAlign()};
  if (instruction.isAtomic())
    access.kind = AccessKind::atomic;
  if (access.pointer && isPrivate(access.pointer))
    access.pointer = nullptr;
  return access;
}

void KernelRewriter::announceAccess(llvm::Instruction &instruction) {
  MemoryAccess access = getAccess(instruction);
  if (!access.pointer)
    return;
  const llvm::DataLayout &layout = kernel.getParent()->getDataLayout();
  b.SetInsertPoint(&instruction);
  call(offsetof(EmulatedCalls, access), b.getVoidTy(),
       {b.CreateAddrSpaceCast(access.pointer, b.getPtrTy()),
        b.getInt32(layout.getTypeStoreSize(access.type)),
        b.getInt32(access.alignment.value()), b.getInt8(uint8_t(access.kind))});
}

/// A wrong alignment is for the emulator to find, not for this machine.
static void forgetAlignment(llvm::Instruction &instruction) {
  if (instruction.isAtomic())
    return;
  if (auto *load = dyn_cast<llvm::LoadInst>(&instruction))
    load->setAlignment(llvm::Align(1));
  else if (auto *store = dyn_cast<llvm::StoreInst>(&instruction))
    store->setAlignment(llvm::Align(1));
}

llvm::Value *KernelRewriter::emulateShuffle(llvm::IntrinsicInst &shuffle,
                                            ShuffleMode mode) {
  Value *value = shuffle.getArgOperand(1);
  Value *bits = b.CreateBitCast(value, b.getInt32Ty());
  Value *both =
      call(offsetof(EmulatedCalls, shuffle), b.getInt64Ty(),
           {b.getInt32(uint32_t(mode)), shuffle.getArgOperand(0), bits,
            shuffle.getArgOperand(2), shuffle.getArgOperand(3)});
  Value *word = b.CreateTrunc(both, b.getInt32Ty());
  Value *result = b.CreateBitCast(word, value->getType());
  if (!shuffle.getType()->isStructTy())
    return result;
  Value *isInside = b.CreateTrunc(b.CreateLShr(both, 32), b.getInt1Ty());
  Value *pair = llvm::PoisonValue::get(shuffle.getType());
  pair = b.CreateInsertValue(pair, result, 0);
  return b.CreateInsertValue(pair, isInside, 1);
}

llvm::Value *KernelRewriter::emulateVote(llvm::IntrinsicInst &vote) {
  Value *mask = vote.getArgOperand(0);
  Value *predicate = b.CreateZExt(vote.getArgOperand(1), b.getInt32Ty());
  Value *ballot =
      call(offsetof(EmulatedCalls, ballot), b.getInt32Ty(), {mask, predicate});
  switch (vote.getIntrinsicID()) {
  case llvm::Intrinsic::nvvm_vote_any_sync:
    return b.CreateICmpNE(ballot, b.getInt32(0));
  case llvm::Intrinsic::nvvm_vote_all_sync:
    return b.CreateICmpEQ(ballot, mask);
  default:
    return ballot;
  }
}

llvm::Value *KernelRewriter::allocateWords(unsigned count) {
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  llvm::BasicBlock &entry = function->getEntryBlock();
  b.SetInsertPoint(&entry, entry.getFirstInsertionPt());
  return b.CreateAlloca(b.getInt32Ty(), b.getInt32(count));
}

/// Six words of the factors and four sums go through memory.
llvm::Value *KernelRewriter::emulateProduct(llvm::IntrinsicInst &product,
                                            PairKind kind) {
  constexpr unsigned kWords = 6, kSums = 4;
  if (!productWords) {
    productWords = allocateWords(kWords);
    productSums = allocateWords(kSums);
  }
  for (unsigned i = 0; i < kWords; ++i)
    b.CreateStore(b.CreateBitCast(product.getArgOperand(i), b.getInt32Ty()),
                  b.CreateConstGEP1_64(b.getInt32Ty(), productWords, i));
  for (unsigned i = 0; i < kSums; ++i)
    b.CreateStore(product.getArgOperand(kWords + i),
                  b.CreateConstGEP1_64(b.getInt32Ty(), productSums, i));
  call(offsetof(EmulatedCalls, multiply), b.getVoidTy(),
       {b.getInt32(uint32_t(kind)), productWords, productSums});
  Value *sums = llvm::PoisonValue::get(product.getType());
  for (unsigned i = 0; i < kSums; ++i) {
    Value *address = b.CreateConstGEP1_64(b.getInt32Ty(), productSums, i);
    sums = b.CreateInsertValue(sums, b.CreateLoad(b.getFloatTy(), address), i);
  }
  return sums;
}

llvm::Value *KernelRewriter::emulate(llvm::IntrinsicInst &intrinsic) {
  using namespace llvm::Intrinsic;
  switch (intrinsic.getIntrinsicID()) {
  case nvvm_read_ptx_sreg_tid_x:
    return readThread(offsetof(EmulatedThread, thread));
  case nvvm_read_ptx_sreg_ctaid_x:
    return readThread(offsetof(EmulatedThread, block));
  case nvvm_read_ptx_sreg_ntid_x:
    return readThread(offsetof(EmulatedThread, threads));
  case nvvm_read_ptx_sreg_nctaid_x:
    return readThread(offsetof(EmulatedThread, blocks));
  case nvvm_read_ptx_sreg_laneid:
    return b.CreateAnd(readThread(offsetof(EmulatedThread, thread)),
                       emulated::kWarpSize - 1);
  case nvvm_read_ptx_sreg_warpsize:
    return b.getInt32(emulated::kWarpSize);
  case nvvm_barrier0:
    return call(offsetof(EmulatedCalls, barrier), b.getVoidTy(), {});
  case nvvm_bar_warp_sync:
    return call(offsetof(EmulatedCalls, syncWarp), b.getVoidTy(),
                {intrinsic.getArgOperand(0)});
  case nvvm_shfl_sync_up_i32:
  case nvvm_shfl_sync_up_f32:
  case nvvm_shfl_sync_up_i32p:
  case nvvm_shfl_sync_up_f32p:
    return emulateShuffle(intrinsic, ShuffleMode::up);
  case nvvm_shfl_sync_down_i32:
  case nvvm_shfl_sync_down_f32:
  case nvvm_shfl_sync_down_i32p:
  case nvvm_shfl_sync_down_f32p:
    return emulateShuffle(intrinsic, ShuffleMode::down);
  case nvvm_shfl_sync_bfly_i32:
  case nvvm_shfl_sync_bfly_f32:
  case nvvm_shfl_sync_bfly_i32p:
  case nvvm_shfl_sync_bfly_f32p:
    return emulateShuffle(intrinsic, ShuffleMode::butterfly);
  case nvvm_shfl_sync_idx_i32:
  case nvvm_shfl_sync_idx_f32:
  case nvvm_shfl_sync_idx_i32p:
  case nvvm_shfl_sync_idx_f32p:
    return emulateShuffle(intrinsic, ShuffleMode::index);
  case nvvm_vote_any_sync:
  case nvvm_vote_all_sync:
  case nvvm_vote_ballot_sync:
    return emulateVote(intrinsic);
  case nvvm_mma_m16n8k16_row_col_bf16:
    return emulateProduct(intrinsic, PairKind::bf16);
  case nvvm_mma_m16n8k16_row_col_f32_f32:
    return emulateProduct(intrinsic, PairKind::f16);
  default:
    return nullptr;
  }
}

static llvm::Error makeUnknown(const llvm::Twine &what) {
  return llvm::createStringError("the emulation has no " + what);
}

/// An error for what the emulator would not see or cannot run.
static llvm::Error checkInstruction(const llvm::Instruction &instruction,
                                    bool isChecked) {
  auto *call = dyn_cast<llvm::CallInst>(&instruction);
  if (call && call->isInlineAsm())
    return makeUnknown(
        "inline assembly: " +
        cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString());
  auto *intrinsic = dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!intrinsic)
    return llvm::Error::success();
  StringRef name = intrinsic->getCalledFunction()->getName();
  bool isHidden =
      isa<llvm::MemIntrinsic>(intrinsic) || name.starts_with("llvm.masked.");
  if (name.starts_with("llvm.nvvm.") || (isChecked && isHidden))
    return makeUnknown(name);
  return llvm::Error::success();
}

llvm::Error KernelRewriter::rewrite() {
  SmallVector<llvm::Instruction *> instructions;
  for (llvm::Instruction &instruction : llvm::instructions(kernel))
    instructions.push_back(&instruction);
  moveBody();
  placeSharedMemory();
  for (llvm::Instruction *instruction : instructions) {
    if (isChecked)
      announceAccess(*instruction);
    forgetAlignment(*instruction);
    auto *intrinsic = dyn_cast<llvm::IntrinsicInst>(instruction);
    if (!intrinsic)
      continue;
    b.SetInsertPoint(intrinsic);
    Value *value = emulate(*intrinsic);
    if (!value)
      continue;
    if (!intrinsic->getType()->isVoidTy())
      intrinsic->replaceAllUsesWith(value);
    intrinsic->eraseFromParent();
  }
  for (llvm::Instruction &instruction : llvm::instructions(*function))
    if (llvm::Error error = checkInstruction(instruction, isChecked))
      return error;
  return llvm::Error::success();
}

/// Makes the functions of libdevice those of the C library.
static llvm::Error renameFunctions(llvm::Module &module) {
  for (llvm::Function &function : module) {
    StringRef name = function.getName();
    if (!function.isDeclaration() || !name.consume_front(cpu::kLibdevicePrefix))
      continue;
    if (!cpu::hasLibraryFunction(name))
      return makeUnknown(function.getName());
    function.setName(name.str());
  }
  return llvm::Error::success();
}

static llvm::Error rewriteModule(llvm::Module &module, bool isChecked) {
  SmallVector<llvm::Function *> kernels;
  for (llvm::Function &function : module)
    if (isKernel(function))
      kernels.push_back(&function);
  for (llvm::Function *kernel : kernels) {
    if (llvm::Error error = KernelRewriter(*kernel, isChecked).rewrite())
      return error;
  }
  if (llvm::NamedMDNode *annotations =
          module.getNamedMetadata("nvvm.annotations"))
    annotations->eraseFromParent();
  for (llvm::Function *kernel : kernels)
    kernel->eraseFromParent();
  return renameFunctions(module);
}

FailureOr<SmallVector<char, 0>>
tcc::cuda::emitEmulation(ModuleOp module, const cpu::Cpu &host, bool isChecked,
                         const std::optional<ExternalBitcode> &external) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateDeviceModule(
      module, context, cpu::getDataLayout(host), Bf16Conversions::integers);
  if (!code)
    return failure();
  if (external)
    if (llvm::Error error = linkBitcode(*code, *external))
      return module.emitError(toString(std::move(error)));
  if (llvm::Error error = rewriteModule(*code, isChecked))
    return module.emitError(toString(std::move(error)));
  SmallVector<char, 0> bytes;
  if (!cpu::emitMachineCode(*code, host, kVectorBytes, cpu::CodeForm::Object,
                            bytes))
    return module.emitError("cannot be compiled for ") << host.name;
  return bytes;
}
