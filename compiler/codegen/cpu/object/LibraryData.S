// The library files, as bytes of the compiler; paths come from CMake.
  .section .rodata
  .balign 16
  .globl tccLibraryBitcode, tccLibraryBitcodeEnd
tccLibraryBitcode:
  .incbin TCC_LIBRARY_BITCODE
tccLibraryBitcodeEnd:
  .balign 16
  .globl tccLibraryObject, tccLibraryObjectEnd
tccLibraryObject:
  .incbin TCC_LIBRARY_OBJECT
tccLibraryObjectEnd:
  .section .note.GNU-stack, "", %progbits
