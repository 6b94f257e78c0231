// What every kernel of the suite starts from: one source, a GPU through NVRTC or nvcc, a CPU through
// g++ with BANDWATCH_HOST defined.
#pragma once
#ifdef BANDWATCH_HOST
#include "host_shim.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A kernel launched with `threads` threads a block, under a plain C name.
#define KERNEL(threads, name, parameters) \
    extern "C" __global__ void __launch_bounds__(threads) name parameters
// The same held to the registers (32 on most devices) that let 2048 threads be resident.
#define FULL_OCCUPANCY_KERNEL(threads, name, parameters) \
    extern "C" __global__ void __launch_bounds__(threads, 2048 / (threads)) name parameters
// A kernel whose threads meet: barriers, shuffles or shared memory.
#define COOPERATIVE_KERNEL(threads, name, parameters) KERNEL(threads, name, parameters)

// One wide store. Of an assignment NVRTC 13.0 may make four narrow ones (seen for sm_80 and sm_90),
// and __stwb gives a store with an ordering that nobody asked for.
__device__ __forceinline__ void store_global(uint4* p, uint4 v) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
__device__ __forceinline__ void store_global(uint2* p, uint2 v) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x), "r"(v.y)
                 : "memory");
}
#endif

using i64 = long long;
using u32 = unsigned int;
using u64 = unsigned long long;

static_assert(sizeof(i64) == 8 && sizeof(u32) == 4 && sizeof(u64) == 8, "packed arguments rely on it");
