# tcc_add_plugin(NAME SOURCES file... [KERNELS file... CPUS name...]
#   [BITCODE file...] [PTX file...] [CODE file...]): a library that defines operators
# (tcc/op.h).
# Code of kernels is compiled first, and the path of its file is a macro in the sources,
# for TCC_OP_EMBED:
#   KERNELS  C++ of CPU kernels, for each of CPUS, names of --cpu and -march:
#            TCC_CODE_MINE_X86_64_V3 of mine.cpp
#   BITCODE  CUDA C++, by a clang of LLVM 19 or older, which needs no CUDA toolkit, if
#            the source takes tcc/op_cuda.h: TCC_CODE_MINE_NVVM of mine.cu
#   PTX      CUDA C++, by nvcc: TCC_CODE_MINE_PTX of mine.cu
#   CODE     what something else has made, Triton for one: TCC_CODE_MINE_SM_90_CUBIN of
#            mine.sm_90.cubin
# What BITCODE and PTX make is for sm_80 and what came after.

# What compiles bitcode: that of the project, if it is one; else the newest.
function(tcc_find_clang result)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 20)
    set(${result} ${CMAKE_CXX_COMPILER} PARENT_SCOPE)
    return()
  endif()
  find_program(TCC_CLANG NAMES clang++-19 clang++-18 clang++-17 clang++-16 clang++
    DOC "clang of LLVM 19 or older, for bitcode of GPU kernels")
  if(NOT TCC_CLANG)
    message(FATAL_ERROR "tcc_add_plugin: bitcode needs a clang of LLVM 19 or older: TCC_CLANG")
  endif()
  set(${result} ${TCC_CLANG} PARENT_SCOPE)
endfunction()

# What compiles PTX.
function(tcc_find_nvcc result)
  find_program(TCC_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin
    DOC "CUDA's compiler, for PTX of GPU kernels")
  if(NOT TCC_NVCC)
    message(FATAL_ERROR "tcc_add_plugin: PTX needs nvcc: TCC_NVCC")
  endif()
  set(${result} ${TCC_NVCC} PARENT_SCOPE)
endfunction()

# Makes the path of `file` the macro TCC_CODE_<name>.
function(tcc_embed_code plugin sources name file)
  string(MAKE_C_IDENTIFIER "TCC_CODE_${name}" macro)
  string(TOUPPER ${macro} macro)
  target_compile_definitions(${plugin} PRIVATE ${macro}="${file}")
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${file})
endfunction()

# Compiles `source` by the command that follows, for the macro TCC_CODE_<stem>_<kind>.
function(tcc_add_plugin_code plugin sources source kind)
  cmake_path(GET source STEM stem)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${plugin}.${stem}.${kind})
  cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
  set(folders $<TARGET_PROPERTY:${plugin},INCLUDE_DIRECTORIES>)
  add_custom_command(OUTPUT ${object}
    COMMAND ${ARGN} "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>" ${path} -o ${object}
    DEPENDS ${path} COMMAND_EXPAND_LISTS)
  tcc_embed_code(${plugin} "${sources}" ${stem}_${kind} ${object})
endfunction()

function(tcc_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;KERNELS;CPUS;BITCODE;PTX;CODE" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  if(TARGET tcc::op)
    target_link_libraries(${name} PRIVATE tcc::op)
  endif()
  foreach(source IN LISTS ARG_KERNELS)
    foreach(cpu IN LISTS ARG_CPUS)
      tcc_add_plugin_code(${name} "${ARG_SOURCES}" ${source} ${cpu}
        ${CMAKE_CXX_COMPILER} -std=c++17 -O3 -fPIC -march=${cpu}
        -ffunction-sections -fno-exceptions -fno-rtti -fno-math-errno
        -fno-stack-protector -fno-asynchronous-unwind-tables -c)
    endforeach()
  endforeach()
  foreach(source IN LISTS ARG_BITCODE)
    tcc_find_clang(clang)
    tcc_add_plugin_code(${name} "${ARG_SOURCES}" ${source} nvvm
      ${clang} -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc
      -nocudalib -Wno-unknown-cuda-version -std=c++17 -O3 -ffp-contract=off
      -emit-llvm -c)
  endforeach()
  foreach(source IN LISTS ARG_PTX)
    tcc_find_nvcc(nvcc)
    tcc_add_plugin_code(${name} "${ARG_SOURCES}" ${source} ptx
      ${nvcc} -ptx -arch=sm_80 -std=c++17 -O3 -fmad=false)
  endforeach()
  foreach(file IN LISTS ARG_CODE)
    cmake_path(GET file FILENAME name_of_file)
    cmake_path(ABSOLUTE_PATH file OUTPUT_VARIABLE path)
    tcc_embed_code(${name} "${ARG_SOURCES}" ${name_of_file} ${path})
  endforeach()
endfunction()
