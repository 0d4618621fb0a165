# MLIR and LLVM as shared libraries: static LLVM archives beside the shared MLIR
# would put two LLVMs into one process.
find_package(MLIR 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(llvm_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})

# Everything that includes MLIR links this.
add_library(TccMLIR INTERFACE)
target_include_directories(TccMLIR SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_include_directories(TccMLIR INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(TccMLIR INTERFACE ${llvm_definitions})
# As in tcc_precompile: what reuses its headers has the same flags.
target_compile_options(TccMLIR INTERFACE -fno-exceptions
  $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>)
target_link_libraries(TccMLIR INTERFACE MLIR LLVM)
# The names that compiler and runtime share.
add_dependencies(TccMLIR tcc_program_header)

# tcc_tablegen(TARGET name TD file GENERATE output:flag...): runs mlir-tblgen
# once per output.
function(tcc_tablegen)
  cmake_parse_arguments(ARG "" "TARGET;TD" "GENERATE" ${ARGN})
  set(LLVM_TARGET_DEFINITIONS ${ARG_TD})
  include_directories(${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  foreach(rule ${ARG_GENERATE})
    string(REPLACE ":" ";" parts ${rule})
    list(GET parts 0 output)
    list(SUBLIST parts 1 -1 generators)
    list(JOIN generators " " flags)
    separate_arguments(flags)
    mlir_tablegen(${output} ${flags})
  endforeach()
  add_public_tablegen_target(${ARG_TARGET})
endfunction()

# Parsing MLIR's headers is most of the time of a compilation. TccGraph
# precompiles those below with its own ops; tcc_reuse_headers shares them.
set(TCC_PRECOMPILED_HEADERS
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/MemRef/IR/MemRef.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/Matchers.h>
  <mlir/IR/OpImplementation.h>
  <mlir/Pass/PassManager.h>
  <mlir/Transforms/GreedyPatternRewriteDriver.h>)

function(tcc_reuse_headers target)
  tcc_reuse_precompiled(${target} TccGraph)
endfunction()
