// y = ((x - mean) / std) @ matrix for images of C channels, as an affine map of each pixel.
//
//   fused_scalar       a thread a pixel, element by element; any C, D and alignment
//   fused_direct       a thread three (or so) consecutive vectors, as often published
//   fused_shared       a tile a block, staged in shared memory
//   fused_warp         a tile a warp: no thread waits for another warp
//   fused_neighbours   no shared memory: pixels cut by a vector's ends come from the next threads
//   fused_async        tiles of a warp, the next one on its way by cp.async (sm_80)
//   fused_bulk         a tile a block, moved by the copy engine (sm_90)
//
// A kernel ending in _shifted takes any alignment of x; its plain form needs x and y to reach their
// boundaries of 16 bytes at the same pixel. The staging kernels want an odd D, or y on a boundary.
// IN, OUT, CHANNELS_IN, CHANNELS_OUT: see pixels.cuh. Thread counts come from a sweep on an H200.
#include "neighbours.cuh"
#include "tile.cuh"

#ifndef SCALAR_THREADS
#define SCALAR_THREADS 128
#endif
#ifndef DIRECT_THREADS
#define DIRECT_THREADS 256
#endif
#ifndef SHARED_THREADS
#define SHARED_THREADS 256
#endif
#ifndef WARP_THREADS
#define WARP_THREADS 64
#endif
#ifndef NEIGHBOUR_THREADS
#define NEIGHBOUR_THREADS 96
#endif
#ifndef ASYNC_THREADS
#define ASYNC_THREADS 64
#endif
#ifndef ASYNC_TILES
#define ASYNC_TILES 2
#endif
#ifndef BULK_THREADS
#define BULK_THREADS 128
#endif

#define PARAMETERS (const Byte* x, Byte* y, Layout layout, Affine map)

KERNEL(SCALAR_THREADS, fused_scalar, PARAMETERS) {
    transform_scalar<SCALAR_THREADS>(row_of_block(x, y, layout), map);
}

#if VECTOR_PATHS
KERNEL(DIRECT_THREADS, fused_direct, PARAMETERS) {
    transform_direct<DIRECT_THREADS>(row_of_block(x, y, layout), map);
}

#define STAGED_KERNELS(SUFFIX, SHIFTED)                                                             \
    COOPERATIVE_KERNEL(SHARED_THREADS, fused_shared##SUFFIX, PARAMETERS) {                          \
        __shared__ __align__(16) Byte stage[STAGE_BYTES<SHARED_THREADS>];                         \
        const Row row = row_of_block(x, y, layout);                                                 \
        transform_tile<SHARED_THREADS, SHIFTED>(row, row.block, stage, map);                        \
    }                                                                                               \
    COOPERATIVE_KERNEL(WARP_THREADS, fused_warp##SUFFIX, PARAMETERS) {                              \
        constexpr int WARPS = WARP_THREADS / 32;                                                    \
        __shared__ __align__(16) Byte stage[WARPS][STAGE_BYTES<32>];                              \
        const Row row = row_of_block(x, y, layout);                                                 \
        const int warp = threadIdx.x / 32;                                                          \
        transform_tile<32, SHIFTED>(row, static_cast<i64>(row.block) * WARPS + warp, stage[warp], map); \
    }
STAGED_KERNELS(, false)
STAGED_KERNELS(_shifted, true)

#if CHANNELS_IN == CHANNELS_OUT
COOPERATIVE_KERNEL(NEIGHBOUR_THREADS, fused_neighbours, PARAMETERS) {
    transform_neighbours<NEIGHBOUR_THREADS, false>(row_of_block(x, y, layout), map);
}
COOPERATIVE_KERNEL(NEIGHBOUR_THREADS, fused_neighbours_shifted, PARAMETERS) {
    transform_neighbours<NEIGHBOUR_THREADS, true>(row_of_block(x, y, layout), map);
}
#endif

#if defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 800
#define ASYNC_KERNEL(NAME, SHIFTED)                                                                 \
    COOPERATIVE_KERNEL(ASYNC_THREADS, NAME, PARAMETERS) {                                           \
        constexpr int WARPS = ASYNC_THREADS / 32;                                                   \
        __shared__ __align__(16) Byte stages[WARPS][2 * STAGE_BYTES<32>];                         \
        const Row row = row_of_block(x, y, layout);                                                 \
        const int warp = threadIdx.x / 32;                                                          \
        const i64 first = (static_cast<i64>(row.block) * WARPS + warp) * ASYNC_TILES;               \
        transform_pipeline<32, ASYNC_TILES, SHIFTED>(row, first, stages[warp], map);                \
    }
ASYNC_KERNEL(fused_async, false)
ASYNC_KERNEL(fused_async_shifted, true)
#endif

#if defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 900
#define BULK_KERNEL(NAME, SHIFTED)                                                                  \
    COOPERATIVE_KERNEL(BULK_THREADS, NAME, PARAMETERS) {                                            \
        __shared__ __align__(128) Byte stage[STAGE_BYTES<BULK_THREADS>];                          \
        __shared__ u64 barrier;                                                                     \
        const Row row = row_of_block(x, y, layout);                                                 \
        transform_bulk<BULK_THREADS, SHIFTED>(row, row.block, stage, &barrier, map);                \
    }
BULK_KERNEL(fused_bulk, false)
BULK_KERNEL(fused_bulk_shifted, true)
#endif
#endif
