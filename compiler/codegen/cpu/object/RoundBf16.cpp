#include "compiler/codegen/cpu/object/RoundBf16.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/VFABIDemangler.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

static constexpr StringLiteral kName = "tcc_round_bf16";

/// Lanes of the vectors of which there are functions, and their letters in the
/// names of the x86 vector ABI.
static constexpr std::pair<unsigned, char> kVectors[] = {{8, 'd'}, {16, 'e'}};

static std::string getVectorName(unsigned lanes) {
  return (kName + "_" + Twine(lanes)).str();
}

static Function *declare(Module &module, StringRef name, Type *from, Type *to) {
  auto callee = module.getOrInsertFunction(
      name, FunctionType::get(to, {from}, /*isVarArg=*/false));
  auto *function = cast<Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return function;
}

/// What users make of a bfloat, of its `bits`.
static void replaceUsers(Instruction *rounded, Value *bits) {
  for (User *user : make_early_inc_range(rounded->users())) {
    auto *cast = dyn_cast<CastInst>(user);
    if (!cast)
      continue;
    IRBuilder<> b(cast);
    if (cast->getOpcode() == Instruction::BitCast &&
        cast->getType() == bits->getType()) {
      cast->replaceAllUsesWith(bits);
    } else if (cast->getOpcode() == Instruction::FPExt &&
               cast->getType()->isFloatTy()) {
      Value *wide = b.CreateShl(b.CreateZExt(bits, b.getInt32Ty()), 16);
      cast->replaceAllUsesWith(b.CreateBitCast(wide, b.getFloatTy()));
    } else {
      continue;
    }
    cast->eraseFromParent();
  }
}

void tcc::cpu::callRounding(Module &module) {
  SmallVector<Instruction *> roundings;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (instruction.getOpcode() == Instruction::FPTrunc &&
          instruction.getType()->isBFloatTy() &&
          instruction.getOperand(0)->getType()->isFloatTy())
        roundings.push_back(&instruction);
  if (roundings.empty())
    return;
  LLVMContext &context = module.getContext();
  Type *f32 = Type::getFloatTy(context), *i16 = Type::getInt16Ty(context);
  Function *scalar = declare(module, kName, f32, i16);
  SmallVector<std::string> mappings;
  SmallVector<GlobalValue *> vectors; // which nothing calls yet
  for (auto [lanes, letter] : kVectors) {
    std::string name = getVectorName(lanes);
    vectors.push_back(declare(module, name, FixedVectorType::get(f32, lanes),
                              FixedVectorType::get(i16, lanes)));
    mappings.push_back((Twine("_ZGV") + Twine(letter) + "N" + Twine(lanes) +
                        "v_" + kName + "(" + name + ")")
                           .str());
  }
  appendToCompilerUsed(module, vectors);
  for (Instruction *rounding : roundings) {
    IRBuilder<> b(rounding);
    CallInst *bits = b.CreateCall(scalar, rounding->getOperand(0));
    VFABI::setVectorVariantNames(bits, mappings);
    replaceUsers(rounding, bits);
    if (!rounding->use_empty())
      rounding->replaceAllUsesWith(b.CreateBitCast(bits, rounding->getType()));
    rounding->eraseFromParent();
  }
}

/// The instruction for a vector of `lanes`.
static Value *emitVector(IRBuilder<> &b, Value *x, unsigned lanes) {
  auto id = lanes == 8 ? Intrinsic::x86_avx512bf16_cvtneps2bf16_256
                       : Intrinsic::x86_avx512bf16_cvtneps2bf16_512;
  Value *rounded = b.CreateIntrinsic(id, {}, {x});
  return b.CreateBitCast(rounded, FixedVectorType::get(b.getInt16Ty(), lanes));
}

static void replaceCalls(Module &module, StringRef name, unsigned lanes) {
  Function *function = module.getFunction(name);
  if (!function)
    return;
  removeFromUsedLists(module, [&](Constant *used) { return used == function; });
  function->removeDeadConstantUsers();
  for (User *user : make_early_inc_range(function->users())) {
    auto *call = cast<CallInst>(user);
    IRBuilder<> b(call);
    Value *x = call->getArgOperand(0), *bits;
    if (lanes == 1) {
      auto *type = FixedVectorType::get(b.getFloatTy(), kVectors[0].first);
      Value *vector =
          b.CreateInsertElement(PoisonValue::get(type), x, uint64_t(0));
      bits = b.CreateExtractElement(emitVector(b, vector, kVectors[0].first),
                                    uint64_t(0));
    } else {
      bits = emitVector(b, x, lanes);
    }
    call->replaceAllUsesWith(bits);
    call->eraseFromParent();
  }
  function->eraseFromParent();
}

void tcc::cpu::inlineRounding(Module &module) {
  replaceCalls(module, kName, 1);
  for (auto [lanes, letter] : kVectors)
    replaceCalls(module, getVectorName(lanes), lanes);
}
