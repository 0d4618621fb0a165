# tcc_add_plugin(NAME SOURCES file... [KERNELS file... CPUS name...]): a library that
# defines operators (tcc/op.h). Each of KERNELS, C++ of CPU kernels, is compiled for
# each of CPUS, names of --cpu and -march; the path of the object of mine.cpp for
# x86-64-v3 is TCC_CODE_MINE_X86_64_V3 in the sources, for TCC_OP_EMBED.
function(tcc_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;KERNELS;CPUS" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  if(TARGET tcc::op)
    target_link_libraries(${name} PRIVATE tcc::op)
  endif()
  foreach(source IN LISTS ARG_KERNELS)
    foreach(cpu IN LISTS ARG_CPUS)
      cmake_path(GET source STEM stem)
      set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.${stem}.${cpu}.o)
      cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
      add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_CXX_COMPILER} -std=c++17 -O3 -fPIC -march=${cpu}
          -ffunction-sections -fno-exceptions -fno-rtti -fno-math-errno
          -fno-stack-protector -fno-asynchronous-unwind-tables
          -c ${path} -o ${object}
        DEPENDS ${path})
      string(MAKE_C_IDENTIFIER "TCC_CODE_${stem}_${cpu}" macro)
      string(TOUPPER ${macro} macro)
      target_compile_definitions(${name} PRIVATE ${macro}="${object}")
      set_property(SOURCE ${ARG_SOURCES} APPEND PROPERTY OBJECT_DEPENDS ${object})
    endforeach()
  endforeach()
endfunction()
