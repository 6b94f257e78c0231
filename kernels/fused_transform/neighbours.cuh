// Vectors of outputs computed from neighbouring threads' vectors, with no shared memory.
//
// With C = D, output element e belongs to channel e mod C whatever the alignment. A thread owns the
// 16-byte vector of outputs number `base + thread` and loads the inputs at the same elements; the
// pixels cut by either end of its vector are completed by at most C - 1 elements from each neighbour.
// No whole pixels are peeled, so any alignment of elements works.
#pragma once
#include "pixels.cuh"

#if CHANNELS_IN == CHANNELS_OUT

constexpr int V = 16 / static_cast<int>(sizeof(Out));           // elements of a vector
constexpr int CHUNK = V * static_cast<int>(sizeof(In));         // bytes of its inputs
constexpr int CHUNK_WORDS = CHUNK / 4;
constexpr int BORDER = C - 1;                                   // elements wanted from a neighbour
constexpr int BORDER_WORDS = (BORDER * static_cast<int>(sizeof(In)) + 3) / 4;
constexpr int SPAN = ((V + C - 2) / C + 1) * C;                 // elements of all pixels it may touch
static_assert(BORDER_WORDS <= CHUNK_WORDS, "one neighbour holds all that is wanted");

// Inputs of a vector, by single elements; 0 for those outside of the row.
__device__ __forceinline__ void gather(const In* x, i64 first, i64 elements, u32 (&chunk)[CHUNK_WORDS]) {
    constexpr int IN_WORD = 4 / static_cast<int>(sizeof(In));
#pragma unroll
    for (int w = 0; w < CHUNK_WORDS; ++w) {
        chunk[w] = 0;
#pragma unroll
        for (int k = 0; k < IN_WORD; ++k) {
            const i64 e = first + w * IN_WORD + k;
            if (e >= 0 && e < elements) chunk[w] |= bits_of(x[e]) << (8 * sizeof(In) * k);
        }
    }
}

// Inputs of a vector, all of whose bytes and of those up to 16-byte boundaries lie within the row.
template <bool SHIFTED, int W> __device__ __forceinline__ void load_chunk(const Byte* from, u32 (&chunk)[W]) {
    const u32* words = reinterpret_cast<const u32*>(from - (SHIFTED ? reinterpret_cast<u64>(from) % 4 : 0));
    if constexpr (W == 4 && SHIFTED) {
        // The second vector is the first of the next thread, so L1 serves it: no streaming hint.
        const u32 shift = reinterpret_cast<u64>(from) % 16;
        u32 raw[8];
        words_of_vectors(from - shift, raw);
        shift_words(raw, shift, chunk);
    } else if constexpr (W == 4) {
        const uint4 v = load_stream(from);
        chunk[0] = v.x, chunk[1] = v.y, chunk[2] = v.z, chunk[3] = v.w;
    } else if constexpr (W == 2 && !SHIFTED) {
        const uint2 v = *reinterpret_cast<const uint2*>(from);
        chunk[0] = v.x, chunk[1] = v.y;
    } else {
        u32 raw[W + 1];
#pragma unroll
        for (int k = 0; k < (SHIFTED ? W + 1 : W); ++k) raw[k] = words[k];
        const u32 shift = reinterpret_cast<u64>(from) % 4 * 8;
#pragma unroll
        for (int k = 0; k < W; ++k) chunk[k] = SHIFTED ? __funnelshift_r(raw[k], raw[k + 1], shift) : raw[k];
    }
}

// A vector's pixels, computed whole, and the V outputs that are this vector's own. `phase` is the
// channel of its first element.
__device__ __forceinline__ uint4 transform_vector(const float (&before)[BORDER], const u32 (&own)[CHUNK_WORDS],
                                                  const float (&after)[BORDER], int phase, const Affine& map) {
    constexpr int HELD = V + 2 * BORDER;
    float held[HELD];
#pragma unroll
    for (int i = 0; i < BORDER; ++i) {
        held[i] = before[i];
        held[BORDER + V + i] = after[i];
    }
#pragma unroll
    for (int i = 0; i < V; ++i) held[BORDER + i] = element(own, i);
    float y[SPAN];
#pragma unroll
    for (int first = 0; first < SPAN; first += C) {
        float x[C];
#pragma unroll
        for (int c = 0; c < C; ++c) {
            x[c] = 0.0f;
            // Selected, not indexed: an index known only at run time would move `held` to memory.
#pragma unroll
            for (int p = 0; p < C; ++p) {
                const int i = BORDER - p + first + c;
                if (i < HELD && phase == p) x[c] = held[i];
            }
        }
#pragma unroll
        for (int d = 0; d < D; ++d) y[first + d] = weighted(x, map, d);
    }
    float out[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
        out[i] = y[i];
#pragma unroll
        for (int p = 1; p < C; ++p) {
            if (phase == p) out[i] = y[i + p];
        }
    }
    u32 words[4];
    pack(out, words);
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// Outputs before the first whole vector or after the last, one a thread.
__device__ __forceinline__ void transform_elements(const Row& row, i64 first, i64 end, const Affine& map) {
    const i64 e = first + threadIdx.x;
    if (e >= end) return;
    const In* in = reinterpret_cast<const In*>(row.x) + e / C * C;
    float x[C];
#pragma unroll
    for (int c = 0; c < C; ++c) x[c] = widen(in[c]);
    float y = 0.0f;
#pragma unroll
    for (int d = 0; d < D; ++d) {
        if (e % C == d) y = weighted(x, map, d);
    }
    narrow(y, reinterpret_cast<Out*>(row.y) + e);
}

struct Loaded {
    u32 own[CHUNK_WORDS];
    float border[BORDER];  // for the ends of the warp, which have no neighbour to ask
};

template <bool SHIFTED> __device__ __forceinline__ Loaded load_vector(const Byte* from, i64 first, i64 elements) {
    constexpr int REACH = SHIFTED ? 16 / static_cast<int>(sizeof(In)) : 0;
    const In* x = reinterpret_cast<const In*>(from);
    Loaded v;
    if (first >= REACH && first + V + REACH <= elements) {
        load_chunk<SHIFTED>(reinterpret_cast<const Byte*>(x + first), v.own);
    } else {
        gather(x, first, elements, v.own);
    }
    const int lane = threadIdx.x % 32;
    const i64 border = lane == 0 ? first - BORDER : first + V;
#pragma unroll
    for (int i = 0; i < BORDER; ++i) {
        v.border[i] = 0.0f;
        if ((lane == 0 || lane == 31) && border + i >= 0 && border + i < elements) v.border[i] = widen(x[border + i]);
    }
    return v;
}

// Asks the neighbours; every thread of the warp takes part.
__device__ __forceinline__ uint4 finish_vector(const Loaded& v, int phase, const Affine& map) {
    constexpr int HELD = BORDER_WORDS * 4 / static_cast<int>(sizeof(In));
    u32 left[BORDER_WORDS], right[BORDER_WORDS];
#pragma unroll
    for (int k = 0; k < BORDER_WORDS; ++k) {
        left[k] = __shfl_up_sync(0xffffffffu, v.own[CHUNK_WORDS - BORDER_WORDS + k], 1);
        right[k] = __shfl_down_sync(0xffffffffu, v.own[k], 1);
    }
    const int lane = threadIdx.x % 32;
    float before[BORDER], after[BORDER];
#pragma unroll
    for (int i = 0; i < BORDER; ++i) {
        before[i] = lane == 0 ? v.border[i] : element(left, HELD - BORDER + i);
        after[i] = lane == 31 ? v.border[i] : element(right, i);
    }
    return transform_vector(before, v.own, after, phase, map);
}

// VECTORS vectors a thread, THREADS apart; the last block also has the elements after them.
template <int THREADS, bool SHIFTED>
__device__ __forceinline__ void transform_neighbours(const Row& row, const Affine& map) {
    constexpr int U = VECTORS;
    const i64 elements = row.pixels * C;
    const int head = static_cast<int>(elements_to_boundary(row.y));
    const i64 base = head + static_cast<i64>(row.block) * (THREADS * U * V);
    const int phase = static_cast<int>(base % C);
    if (row.block == 0) transform_elements(row, 0, head < elements ? head : elements, map);
    if (base >= elements) return;
    Loaded v[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        v[u] = load_vector<SHIFTED>(row.x, base + (threadIdx.x + u * THREADS) * V, elements);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const int own = (threadIdx.x + u * THREADS) * V;
        const uint4 out = finish_vector(v[u], (phase + own) % C, map);
        if (base + own + V <= elements) store_stream(row.y + (base + own) * static_cast<i64>(sizeof(Out)), out);
    }
    const i64 rest = elements - (elements - head) % V;
    if (base + THREADS * U * V > rest) transform_elements(row, rest, elements, map);
}
#endif
