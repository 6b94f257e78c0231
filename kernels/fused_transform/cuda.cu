// y = ((x - mean) / std) @ matrix for images of C channels, as an affine map of each pixel.
//
//   fused_scalar       a thread a pixel, element by element; any C, D and alignment
//   fused_direct       a thread three (or so) consecutive vectors, as often published
//   fused_shared       a tile a block, staged in shared memory
//   fused_warp         a tile a warp: no thread waits for another warp
//   fused_pipeline     two tiles a warp by cp.async, the second on its way while the first is computed (sm_80)
//   fused_bulk         a tile a block, moved by the copy engine (sm_90)
//
// A kernel ending in _shifted takes any alignment of x; its plain form needs x and y to reach their
// boundaries of 16 bytes at the same pixel. The staging kernels want an odd D, or y on a boundary.
// IN, OUT, CHANNELS_IN, CHANNELS_OUT: see pixels.cuh. A kernel exists where its threads a block are
// defined, such as WARP_THREADS; variants.py has the counts, from a sweep on an H200.
#include "tile.cuh"

#define PARAMETERS (const Byte* x, Byte* y, Layout layout, Affine map)

// A kernel by tiles. Small pixels are held to the registers that let an SM have so many threads, or as
// many as 32 blocks are: left alone the compiler takes 32 to 48, and spills where it aims for 32.
constexpr int MOST_THREADS = 1280;  // 48 registers each
#ifdef BANDWATCH_HOST
#define TILE_KERNEL(THREADS, RESIDENT, NAME) COOPERATIVE_KERNEL(THREADS, NAME, PARAMETERS)
#else
constexpr int RESIDENT_THREADS = __CUDA_ARCH__ >= 900 ? 1536 : MOST_THREADS;  // 40 registers each, or 48
constexpr bool SMALL_PIXELS = IN_THREAD + OUT_THREAD <= 112;
template <int THREADS, int RESIDENT>
constexpr int BLOCKS = !SMALL_PIXELS ? 1 : THREADS < 64 ? 32 : RESIDENT / THREADS;
#define TILE_KERNEL(THREADS, RESIDENT, NAME) \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS<THREADS, RESIDENT>) NAME PARAMETERS
#endif

#ifdef SCALAR_THREADS
KERNEL(SCALAR_THREADS, fused_scalar, PARAMETERS) {
    transform_scalar<SCALAR_THREADS>(row_of_block(x, y, layout), map);
}
#endif

#ifdef DIRECT_THREADS
KERNEL(DIRECT_THREADS, fused_direct, PARAMETERS) {
    transform_direct<DIRECT_THREADS>(row_of_block(x, y, layout), map);
}
#endif

#ifdef SHARED_THREADS
// In fp16 it spilled 8 bytes with 40 registers (sm_90).
#define SHARED_KERNEL(NAME, SHIFTED)                                                                \
    TILE_KERNEL(SHARED_THREADS, MOST_THREADS, NAME) {                                               \
        __shared__ __align__(16) Byte stage[STAGE_BYTES<SHARED_THREADS>];                           \
        const Row row = row_of_block(x, y, layout);                                                 \
        transform_tile<SHARED_THREADS, SHIFTED>(row, row.block, stage, map);                        \
    }
SHARED_KERNEL(fused_shared, false)
SHARED_KERNEL(fused_shared_shifted, true)
#endif

#ifdef WARP_THREADS
#define WARP_KERNEL(NAME, SHIFTED)                                                                  \
    TILE_KERNEL(WARP_THREADS, RESIDENT_THREADS, NAME) {                                             \
        constexpr int WARPS = WARP_THREADS / 32;                                                    \
        __shared__ __align__(16) Byte stages[WARPS][STAGE_BYTES<32>];                               \
        const Row row = row_of_block(x, y, layout);                                                 \
        const int warp = threadIdx.x / 32;                                                          \
        const i64 index = static_cast<i64>(row.block) * WARPS + warp;                               \
        transform_tile<32, SHIFTED>(row, index, stages[warp], map);                                 \
    }
WARP_KERNEL(fused_warp, false)
WARP_KERNEL(fused_warp_shifted, true)
#endif

#if defined(PIPELINE_THREADS) && (defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 800)
#define PIPELINE_KERNEL(NAME, SHIFTED)                                                              \
    TILE_KERNEL(PIPELINE_THREADS, RESIDENT_THREADS, NAME) {                                         \
        constexpr int WARPS = PIPELINE_THREADS / 32;                                                \
        __shared__ __align__(16) Byte stages[WARPS][2 * STAGE_BYTES<32>];                           \
        const Row row = row_of_block(x, y, layout);                                                 \
        const int warp = threadIdx.x / 32;                                                          \
        const i64 first = (static_cast<i64>(row.block) * WARPS + warp) * PIPELINE_TILES;            \
        transform_pipeline<32, SHIFTED>(row, first, stages[warp], map);                             \
    }
PIPELINE_KERNEL(fused_pipeline, false)
PIPELINE_KERNEL(fused_pipeline_shifted, true)
#endif

#if defined(BULK_THREADS) && (defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 900)
#define BULK_KERNEL(NAME, SHIFTED)                                                                  \
    TILE_KERNEL(BULK_THREADS, RESIDENT_THREADS, NAME) {                                             \
        __shared__ __align__(128) Byte stage[STAGE_BYTES<BULK_THREADS>];                            \
        __shared__ u64 barrier;                                                                     \
        const Row row = row_of_block(x, y, layout);                                                 \
        transform_bulk<BULK_THREADS, SHIFTED>(row, row.block, stage, &barrier, map);                \
    }
BULK_KERNEL(fused_bulk, false)
BULK_KERNEL(fused_bulk_shifted, true)
#endif
