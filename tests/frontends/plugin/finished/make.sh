#!/bin/sh
# Makes the cubin beside it; needs ptxas of a CUDA toolkit.
cd "$(dirname "$0")" && ptxas -arch=sm_90 Code.ptx -o Code.sm_90.cubin
