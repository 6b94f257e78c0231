// Tiles of pixels staged in shared memory, so that global memory is touched in whole, coalesced
// 16-byte vectors although a pixel is 3, 6 or 12 bytes.
//
// A tile belongs to a group of threads, a warp or the block. Its first output lies on a boundary
// (whole pixels are peeled before it); its first input lies anywhere: the vectors that hold the tile
// are staged as they are and shifted on the way from shared memory to registers.
#pragma once
#include "pixels.cuh"

#ifndef VECTORS
#define VECTORS 1
#endif

// Pixels a thread: so many that their outputs fill whole vectors.
constexpr int P = VECTORS * 16 / static_cast<int>(sizeof(Out));
constexpr int IN_THREAD = P * IN_PIXEL;    // bytes; a multiple of 4
constexpr int OUT_THREAD = P * OUT_PIXEL;  // bytes; a multiple of 16
static_assert(IN_THREAD % 4 == 0 && OUT_THREAD % 16 == 0, "a thread owns whole words and vectors");

// Bytes of shared memory that a group needs: the tile, one vector more for the shift.
template <int GROUP> constexpr int STAGE_BYTES = (IN_THREAD > OUT_THREAD ? IN_THREAD : OUT_THREAD) * GROUP + 16;

// Threads that share a tile.
template <int GROUP> __device__ __forceinline__ int rank_in_group() { return threadIdx.x % GROUP; }
template <int GROUP> __device__ __forceinline__ void meet_group() {
    if (GROUP == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

struct Tile {
    const Byte* x;   // of the vector that holds its first pixel
    Byte* y;
    int shift;       // of its first pixel into that vector, in bytes
    int pixels;      // in the tile, fewer at the end of the row; none beyond it
    int begin, end;  // the vectors, of those that hold its pixels, that lie within the row
    bool whole;      // every pixel is there, and every vector lies within the row
};

template <int GROUP, bool SHIFTED> __device__ __forceinline__ Tile tile_of_row(const Row& row, i64 index) {
    constexpr int PIXELS = GROUP * P;
    const i64 first = index * PIXELS + pixels_to_boundary(row.y);
    const i64 left = row.pixels - first;
    const Byte* x = row.x + first * IN_PIXEL;
    Tile tile;
    tile.shift = SHIFTED ? static_cast<int>(reinterpret_cast<u64>(x) % 16) : 0;
    tile.x = x - tile.shift;
    tile.y = row.y + first * OUT_PIXEL;
    tile.pixels = left < 0 ? 0 : left < PIXELS ? static_cast<int>(left) : PIXELS;
    tile.begin = SHIFTED && tile.x < row.x ? 1 : 0;
    const int vectors = (tile.shift + tile.pixels * IN_PIXEL + 15) / 16;
    const i64 inside = left < 0 ? 0 : (tile.shift + left * IN_PIXEL) / 16;
    tile.end = inside < vectors ? static_cast<int>(inside) : vectors;
    tile.whole = tile.pixels == PIXELS && tile.begin == 0 && tile.end == vectors;
    return tile;
}

// The pixels before the first tile of a row.
template <int GROUP> __device__ __forceinline__ void transform_head(const Row& row, const Affine& map) {
    const int head = pixels_to_boundary(row.y);
#pragma unroll 1
    for (int p = rank_in_group<GROUP>(); p < head && p < row.pixels; p += GROUP) {
        transform_pixel(row.x + p * IN_PIXEL, row.y + p * OUT_PIXEL, map);
    }
}

// ---- between global and shared memory ----------------------------------------------------------

// Vectors that a group loads.
template <int GROUP> constexpr int IN_VECTORS = GROUP * IN_THREAD / 16;

template <int GROUP> __device__ __forceinline__ void stage_in(const Tile& tile, Byte* stage) {
    constexpr int N = IN_VECTORS<GROUP>, EACH = (N + GROUP - 1) / GROUP;
    const Byte* from = tile.x;
    const int rank = rank_in_group<GROUP>();
    uint4 v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = rank + k * GROUP;
        if (N % GROUP == 0 || i < N) v[k] = load16(from + i * 16);
    }
    if (tile.shift && rank == 0) store16(stage + N * 16, load16(from + N * 16));
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = rank + k * GROUP;
        if (N % GROUP == 0 || i < N) store16(stage + i * 16, v[k]);
    }
}

template <int GROUP> __device__ __forceinline__ void stage_out(const Tile& tile, const Byte* stage) {
    constexpr int EACH = OUT_THREAD / 16;
    const int rank = rank_in_group<GROUP>();
    uint4 v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) v[k] = load16(stage + (rank + k * GROUP) * 16);
#pragma unroll
    for (int k = 0; k < EACH; ++k) store16(tile.y + (rank + k * GROUP) * 16, v[k]);
}

// Elements between two offsets in bytes, few of them.
template <int GROUP, class T>
__device__ __forceinline__ void move_elements(const Byte* from, Byte* to, int begin, int end) {
#pragma unroll 1
    for (int at = begin + rank_in_group<GROUP>() * static_cast<int>(sizeof(T)); at < end; at += GROUP * sizeof(T)) {
        *reinterpret_cast<T*>(to + at) = *reinterpret_cast<const T*>(from + at);
    }
}

// The same for a tile that is not whole: vectors where they lie within the row, elements at its ends.
// A pixel a thread, one after the other, would be less code, but each costs 0.4 us (H200), and the
// last tile of a row is what the whole launch waits for.
template <int GROUP> __device__ __forceinline__ void edge_in(const Tile& tile, Byte* stage) {
#pragma unroll 1
    for (int i = tile.begin + rank_in_group<GROUP>(); i < tile.end; i += 2 * GROUP) {
        const int other = i + GROUP < tile.end ? i + GROUP : i;
        const uint4 v = load16(tile.x + i * 16), w = load16(tile.x + other * 16);
        store16(stage + i * 16, v);
        store16(stage + other * 16, w);
    }
    const int used = tile.shift + tile.pixels * IN_PIXEL;
    if (tile.begin) move_elements<GROUP, In>(tile.x, stage, tile.shift, used < 16 ? used : 16);
    const int rest = tile.end > tile.begin ? tile.end * 16 : tile.begin ? 16 : tile.shift;
    move_elements<GROUP, In>(tile.x, stage, rest, used);
}

template <int GROUP> __device__ __forceinline__ void edge_out(const Tile& tile, const Byte* stage) {
    const int used = tile.pixels * OUT_PIXEL, rank = rank_in_group<GROUP>();
#pragma unroll 1
    for (int i = rank; i < used / 16; i += GROUP) store16(tile.y + i * 16, load16(stage + i * 16));
    move_elements<GROUP, Out>(stage, tile.y, used / 16 * 16, used);
}

// ---- between shared memory and registers -------------------------------------------------------

// The words of this thread's pixels, `shift` bytes into the stage.
template <bool SHIFTED> __device__ __forceinline__ void take_pixels(const Byte* own, u32 shift, u32 (&words)[IN_THREAD / 4]) {
    constexpr int W = IN_THREAD / 4;
    if constexpr (W % 4 == 0) {
        if constexpr (SHIFTED) {
            u32 raw[W + 4];
            words_of_vectors(own, raw);
            shift_words(raw, shift, words);
        } else {
            words_of_vectors(own, words);
        }
    } else {
        const u32* from = reinterpret_cast<const u32*>(own + (SHIFTED ? shift / 4 * 4 : 0));
        u32 c[W + 1];
#pragma unroll
        for (int k = 0; k < W + (SHIFTED ? 1 : 0); ++k) c[k] = from[k];
#pragma unroll
        for (int k = 0; k < W; ++k) words[k] = SHIFTED ? __funnelshift_r(c[k], c[k + 1], shift % 4 * 8) : c[k];
    }
}

// A staged tile: its outputs take the place of its inputs. Pixels that it lacks are computed too, from
// whatever lies there, and go nowhere.
template <int GROUP, bool SHIFTED>
__device__ __forceinline__ void transform_stage(const Tile& tile, Byte* stage, const Affine& map) {
    const int rank = rank_in_group<GROUP>();
    u32 in[IN_THREAD / 4], out[OUT_THREAD / 4];
    take_pixels<SHIFTED>(stage + rank * IN_THREAD, static_cast<u32>(tile.shift), in);
    transform_words<P>(in, out, map);
    meet_group<GROUP>();
    put_words(out, stage + rank * OUT_THREAD);
}

// ---- tiles -------------------------------------------------------------------------------------

// A thread's vectors straight from and to global memory: lanes lie IN_THREAD bytes apart, so one
// instruction touches a part of every sector and the warp comes back for the rest.
template <int THREADS> __device__ __forceinline__ void transform_direct(const Row& row, const Affine& map) {
    constexpr int EACH = 16 / static_cast<int>(sizeof(In)) > P ? 16 / static_cast<int>(sizeof(In)) : P;
    const int head = pixels_to_boundary(row.y);
    const i64 first = head + (static_cast<i64>(row.block) * THREADS + threadIdx.x) * EACH;
    if (row.block == 0) transform_head<THREADS>(row, map);
    const Byte* from = row.x + first * IN_PIXEL;
    Byte* to = row.y + first * OUT_PIXEL;
    if (first + EACH <= row.pixels && reinterpret_cast<u64>(from) % 16 == 0) {
        u32 in[EACH * IN_PIXEL / 4], out[EACH * OUT_PIXEL / 4];
        words_of_vectors(from, in);
        transform_words<EACH>(in, out, map);
        put_words(out, to);
    } else {
#pragma unroll 1
        for (int p = 0; p < EACH && first + p < row.pixels; ++p) {
            transform_pixel(from + p * IN_PIXEL, to + p * OUT_PIXEL, map);
        }
    }
}

// The rest of a tile whose inputs are on their way to the stage or there.
template <int GROUP, bool SHIFTED>
__device__ __forceinline__ void finish_tile(const Tile& tile, Byte* stage, const Affine& map) {
    meet_group<GROUP>();
    transform_stage<GROUP, SHIFTED>(tile, stage, map);
    meet_group<GROUP>();
    stage_out<GROUP>(tile, stage);
}

// A tile that is not whole.
template <int GROUP, bool SHIFTED>
__device__ __forceinline__ void transform_edge(const Tile& tile, Byte* stage, const Affine& map) {
    if (!tile.pixels) return;
    edge_in<GROUP>(tile, stage);
    meet_group<GROUP>();
    transform_stage<GROUP, SHIFTED>(tile, stage, map);
    meet_group<GROUP>();
    edge_out<GROUP>(tile, stage);
}

// One tile a group.
template <int GROUP, bool SHIFTED>
__device__ __forceinline__ void transform_tile(const Row& row, i64 index, Byte* stage, const Affine& map) {
    const Tile tile = tile_of_row<GROUP, SHIFTED>(row, index);
    if (index == 0) transform_head<GROUP>(row, map);
    if (!tile.whole) return transform_edge<GROUP, SHIFTED>(tile, stage, map);
    stage_in<GROUP>(tile, stage);
    finish_tile<GROUP, SHIFTED>(tile, stage, map);
}

#if defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 800
// A whole tile starts its way into shared memory.
template <int GROUP> __device__ __forceinline__ void start_stage(const Tile& tile, Byte* stage) {
    constexpr int N = IN_VECTORS<GROUP>;
    const Byte* from = tile.x;
    const int n = N + (tile.shift ? 1 : 0);
#pragma unroll
    for (int k = 0; k < (N + GROUP) / GROUP; ++k) {
        const int i = rank_in_group<GROUP>() + k * GROUP;
        if (i < n) copy_async(stage + i * 16, from + i * 16);
    }
}

// PIPELINE_TILES tiles a group, one after the other: while one is computed the next is on its way.
constexpr int PIPELINE_TILES = 2;
template <int GROUP, bool SHIFTED>
__device__ __forceinline__ void transform_pipeline(const Row& row, i64 first, Byte* stages, const Affine& map) {
    constexpr int STAGE = STAGE_BYTES<GROUP>;
    if (first == 0) transform_head<GROUP>(row, map);
    Tile next = tile_of_row<GROUP, SHIFTED>(row, first);
    if (next.whole) start_stage<GROUP>(next, stages);
    commit_async();
#pragma unroll 1
    for (int k = 0; k < PIPELINE_TILES; ++k) {
        const Tile tile = next;
        Byte* stage = stages + k % 2 * STAGE;
        if (k + 1 < PIPELINE_TILES) {
            next = tile_of_row<GROUP, SHIFTED>(row, first + k + 1);
            if (next.whole) start_stage<GROUP>(next, stages + (k + 1) % 2 * STAGE);
            commit_async();
            wait_async<1>();
        } else {
            wait_async<0>();
        }
        if (tile.whole) {
            finish_tile<GROUP, SHIFTED>(tile, stage, map);
        } else {
            transform_edge<GROUP, SHIFTED>(tile, stage, map);
        }
        // The next copy into this stage must not overtake the reads of stage_out.
        meet_group<GROUP>();
    }
}
#endif

#if defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 900
// One tile a block, moved both ways by the copy engine.
template <int GROUP, bool SHIFTED>
__device__ __forceinline__ void transform_bulk(const Row& row, i64 index, Byte* stage, u64* barrier,
                                               const Affine& map) {
    const Tile tile = tile_of_row<GROUP, SHIFTED>(row, index);
    if (index == 0) transform_head<GROUP>(row, map);
    if (!tile.whole) return transform_edge<GROUP, SHIFTED>(tile, stage, map);
    if (threadIdx.x == 0) {
        barrier_init(barrier);
        bulk_load(stage, tile.x, GROUP * IN_THREAD + (tile.shift ? 16 : 0), barrier);
    }
    __syncthreads();
    barrier_wait(barrier);
    transform_stage<GROUP, SHIFTED>(tile, stage, map);
    fence_for_bulk();
    __syncthreads();
    if (threadIdx.x == 0) bulk_store(tile.y, stage, GROUP * OUT_THREAD);
}
#endif
