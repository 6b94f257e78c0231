// Elementwise kernels at the speed of memory, parametrised by the operation.
//
// A block owns one tile of the output: its threads x U granules of V elements, its first byte on a boundary
// that tiling.py chooses whatever the alignment of the output itself. Granules wholly inside move as
// vectors; the few elements of granules that either end cuts move one by one, a thread an element, while
// the vectors are under way: head, body and tail in one launch. tiling.py also counts the tiles that an
// end cuts, so that a block knows by one comparison whether its own is whole. Inputs whose phase modulo
// the vector differs from the output's are read as two neighbouring aligned vectors and shifted together.
#pragma once
#include "prelude.cuh"

// Threads of a block that loads U vectors a thread, as in tiling.py; docs/results/kernel-tuning.md says
// why. THREADS is another number for all, to measure it.
#ifdef THREADS
template <int U> constexpr int BLOCK_THREADS = THREADS;
#else
template <int U> constexpr int BLOCK_THREADS = U == 4 ? 64 : 128;
#endif
// Threads of the forms that articles start from.
#define PLAIN_THREADS 256
// Cache hints, replaceable to measure others (names of the load and store intrinsics).
#ifndef LOAD_HINT
#define LOAD_HINT(pointer) (*(pointer))
#endif
#ifndef STORE_HINT
#define STORE_HINT(pointer, value) store_global(pointer, value)
#endif

// ---- lanes: what one 32-bit word holds ---------------------------------------------------------

template <class T> struct Lane;
template <> struct Lane<float> { using type = float; };
template <> struct Lane<__half> { using type = __half2; };
template <> struct Lane<__nv_bfloat16> { using type = __nv_bfloat162; };
template <class T> using LaneOf = typename Lane<T>::type;

template <class To, class From> __device__ __forceinline__ To bit_cast(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof(To));
    return to;
}

// A lone element as a lane and back; the other half of a packed lane repeats it.
__device__ __forceinline__ float to_lane(float v) { return v; }
__device__ __forceinline__ __half2 to_lane(__half v) { return __half2half2(v); }
__device__ __forceinline__ __nv_bfloat162 to_lane(__nv_bfloat16 v) { return __bfloat162bfloat162(v); }
__device__ __forceinline__ float from_lane(float v) { return v; }
__device__ __forceinline__ __half from_lane(__half2 v) { return __low2half(v); }
__device__ __forceinline__ __nv_bfloat16 from_lane(__nv_bfloat162 v) { return __low2bfloat16(v); }

// A packed lane in fp32 and back, rounded to nearest even once.
__device__ __forceinline__ float2 widen(__half2 v) { return __half22float2(v); }
__device__ __forceinline__ float2 widen(__nv_bfloat162 v) { return __bfloat1622float2(v); }
template <class L> __device__ __forceinline__ L narrow(float2 v);
template <> __device__ __forceinline__ __half2 narrow<__half2>(float2 v) { return __float22half2_rn(v); }
template <> __device__ __forceinline__ __nv_bfloat162 narrow<__nv_bfloat162>(float2 v) {
    return __float22bfloat162_rn(v);
}

// An operation in fp32 on every element of a lane, rounded once.
template <class Op> __device__ __forceinline__ float in_fp32(float v, const Op& op) { return op(v); }
template <class L, class Op> __device__ __forceinline__ L in_fp32(L v, const Op& op) {
    const float2 pair = widen(v);
    return narrow<L>(make_float2(op(pair.x), op(pair.y)));
}

// max(v, 0). Not fmaxf: it would turn NaN into 0. A comparison with NaN is false, so NaN is kept.
__device__ __forceinline__ float relu(float v) { return v <= 0.0f ? 0.0f : v; }

// ---- granules: W words that move as one vector -------------------------------------------------

template <int W> struct Words {
    u32 w[W];
};

__device__ __forceinline__ void load_vector(const void* p, Words<4>& to) {
    const uint4 v = LOAD_HINT(static_cast<const uint4*>(p));
    to.w[0] = v.x, to.w[1] = v.y, to.w[2] = v.z, to.w[3] = v.w;
}
__device__ __forceinline__ void load_vector(const void* p, Words<2>& to) {
    const uint2 v = LOAD_HINT(static_cast<const uint2*>(p));
    to.w[0] = v.x, to.w[1] = v.y;
}
__device__ __forceinline__ void load_cached(const void* p, u32 (&to)[4]) {
    const uint4 v = *static_cast<const uint4*>(p);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
__device__ __forceinline__ void load_cached(const void* p, u32 (&to)[2]) {
    const uint2 v = *static_cast<const uint2*>(p);
    to[0] = v.x, to[1] = v.y;
}
__device__ __forceinline__ void store_vector(void* p, const Words<4>& v) {
    STORE_HINT(static_cast<uint4*>(p), make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]));
}
__device__ __forceinline__ void store_vector(void* p, const Words<2>& v) {
    STORE_HINT(static_cast<uint2*>(p), make_uint2(v.w[0], v.w[1]));
}

// The granule at any address: two neighbouring aligned vectors, shifted by whole words and then by
// bytes. Plain loads: the second is the first of the next thread, so L1 serves it.
template <int W> __device__ __forceinline__ void load_shifted(const char* p, Words<W>& to) {
    const u32 phase = static_cast<u32>(reinterpret_cast<u64>(p)) & (4 * W - 1);
    const char* base = p - phase;
    u32 low[W], high[W] = {};
    load_cached(base, low);
    if (phase) load_cached(base + 4 * W, high);  // on phase 0 it may lie beyond what is ours
    u32 c[2 * W];
#pragma unroll
    for (int k = 0; k < W; ++k) c[k] = low[k], c[W + k] = high[k];
    if (W == 4) {
#pragma unroll
        for (int k = 0; k + 2 < 2 * W; ++k) c[k] = phase & 8 ? c[k + 2] : c[k];
    }
#pragma unroll
    for (int k = 0; k <= W; ++k) c[k] = phase & 4 ? c[k + 1] : c[k];
#pragma unroll
    for (int k = 0; k < W; ++k) to.w[k] = __funnelshift_r(c[k], c[k + 1], (phase & 3) * 8);
}

// ---- applying an operation to a granule --------------------------------------------------------
//
// An operation is a functor on lanes. One that changes the element type, or needs to know where in
// the data it is, overloads apply_one and apply_granule instead.

template <class T, int N> struct Inputs {
    const T* p[N];
};

template <class To, class Ti, class Op>
__device__ __forceinline__ To apply_one(const Op& op, const Inputs<Ti, 1>& in, i64 e) {
    return from_lane(op(to_lane(in.p[0][e])));
}
template <class To, class Ti, class Op>
__device__ __forceinline__ To apply_one(const Op& op, const Inputs<Ti, 2>& in, i64 e) {
    return from_lane(op(to_lane(in.p[0][e]), to_lane(in.p[1][e])));
}
template <class To, class Ti, class Op, int W>
__device__ __forceinline__ Words<W> apply_granule(const Op& op, const Words<W> (&in)[1], i64) {
    Words<W> out;
#pragma unroll
    for (int k = 0; k < W; ++k) out.w[k] = bit_cast<u32>(op(bit_cast<LaneOf<Ti>>(in[0].w[k])));
    return out;
}
template <class To, class Ti, class Op, int W>
__device__ __forceinline__ Words<W> apply_granule(const Op& op, const Words<W> (&in)[2], i64) {
    Words<W> out;
#pragma unroll
    for (int k = 0; k < W; ++k) {
        out.w[k] = bit_cast<u32>(op(bit_cast<LaneOf<Ti>>(in[0].w[k]), bit_cast<LaneOf<Ti>>(in[1].w[k])));
    }
    return out;
}

// ---- the tile ----------------------------------------------------------------------------------

template <class To, class Ti> constexpr __device__ int granule_elements() {
    return 16 / (sizeof(Ti) > sizeof(To) ? sizeof(Ti) : sizeof(To));
}

// The granule of each input that begins `bytes` after the input does.
template <bool SHIFTED, class T, int N, int W>
__device__ __forceinline__ void load_granules(const Inputs<T, N>& in, i64 bytes, Words<W> (&to)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const char* p = reinterpret_cast<const char*>(in.p[i]) + bytes;
        if (SHIFTED) {
            load_shifted(p, to[i]);
        } else {
            load_vector(p, to[i]);
        }
    }
}

// Where element `own` of a tile lies, in bytes. Counted in elements it would be shifted as 64 bits, in
// two instructions more before the first load.
template <class T, int TILE> __device__ __forceinline__ i64 bytes_before(u32 tile, int own) {
    constexpr int SIZE = sizeof(T);
    return static_cast<i64>(tile) * (TILE * SIZE) + own * SIZE;
}

// The part of a tile that vectors move, and the elements on both sides of it that move one by one.
// All count from the start of the tile; `reach` elements at either end of the data are not vectors',
// since a shifted load touches the neighbouring granule.
struct Cut {
    int vectors, vectors_end;  // granules in [vectors, vectors_end) are whole
    int first, lone;           // the data start at `first`; `lone` elements are nobody's vector
    __device__ __forceinline__ Cut(i64 base, i64 n, int tile, int granule, int reach) {
        const i64 before = reach - base, after = n - reach - base;
        const int start = before > 0 ? static_cast<int>(before) : 0;
        const int end = after < tile ? static_cast<int>(after) : tile;
        const int last = n - base < tile ? static_cast<int>(n - base) : tile;
        first = base < 0 ? static_cast<int>(-base) : 0;
        vectors = (start + granule - 1) & -granule, vectors_end = end & -granule;
        if (vectors >= vectors_end) vectors = vectors_end = last;
        lone = vectors - first + last - vectors_end;
    }
    // The lone element of thread t < lone.
    __device__ __forceinline__ int element(int t) const {
        const int k = first + t;
        return k < vectors ? k : vectors_end + (k - vectors);
    }
};

// The operation as the granules of a cut tile apply it: one with a large body may give a small form.
template <class Op> __device__ __forceinline__ const Op& in_cut_tile(const Op& op) { return op; }

// A tile that an end cuts: vectors where granules are whole, and a thread for each lone element. All
// loads are under way before the first value is used, as in a whole tile: one after another they
// would take longer than everything else of a launch that is a few microseconds long.
template <int U, bool SHIFTED, class To, class Ti, int N, class Op>
__device__ __forceinline__ void cut_tile(const Op& op, const Inputs<Ti, N>& in, To* out, i64 n, i64 base) {
    constexpr int V = granule_elements<To, Ti>(), W = V * sizeof(Ti) / 4, STEP = BLOCK_THREADS<U> * V;
    static_assert(4 * V <= BLOCK_THREADS<U>, "a thread for each lone element");
    const Cut cut(base, n, U * STEP, V, SHIFTED ? V : 0);
    const int own = threadIdx.x * V, thread = threadIdx.x;
    Words<W> v[U][N];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const int k = own + u * STEP;
        if (k >= cut.vectors && k < cut.vectors_end) {
            load_granules<SHIFTED>(in, (base + k) * static_cast<i64>(sizeof(Ti)), v[u]);
        }
    }
    if (thread < cut.lone) {
        const i64 e = base + cut.element(thread);
        out[e] = apply_one<To>(op, in, e);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const int k = own + u * STEP;
        if (k >= cut.vectors && k < cut.vectors_end) {
            store_vector(out + base + k, apply_granule<To, Ti>(in_cut_tile(op), v[u], base + k));
        }
    }
}

// `n` elements from in to out. The first `edges` blocks take the tiles that an end cuts, the last ones
// before the first, since what takes longer should not begin after the rest. Of the others block b takes
// the tile that begins at element b * TILE - before, and has its loads under way after 17 instructions.
template <int U, bool SHIFTED, class To, class Ti, int N, class Op>
__device__ __forceinline__ void elementwise(const Op& op, const Inputs<Ti, N>& in, To* out, i64 n, u32 before,
                                            u32 edges) {
    constexpr int V = granule_elements<To, Ti>(), W = V * sizeof(Ti) / 4;
    constexpr int STEP = BLOCK_THREADS<U> * V, TILE = U * STEP;
    const u32 block = blockIdx.x;
    const int own = static_cast<int>(threadIdx.x * V - before);
    if (block < edges) {
        const u32 tail = before / TILE, tile = block < tail ? gridDim.x - tail + block : block - tail;
        cut_tile<U, SHIFTED>(op, in, out, n, static_cast<i64>(tile) * TILE - before % TILE);
        return;
    }
    const i64 e = static_cast<i64>(block) * TILE + own;
    const i64 from = bytes_before<Ti, TILE>(block, own);
    Words<W> v[U][N];
#pragma unroll
    for (int u = 0; u < U; ++u) load_granules<SHIFTED>(in, from + u * STEP * static_cast<int>(sizeof(Ti)), v[u]);
    char* const to = reinterpret_cast<char*>(out) + bytes_before<To, TILE>(block, own);
#pragma unroll
    for (int u = 0; u < U; ++u) {
        const int k = u * STEP;
        store_vector(to + k * sizeof(To), apply_granule<To, Ti>(op, v[u], e + k));
    }
}

// ---- the kernels of an operation ---------------------------------------------------------------
//
// `EXTRA` is the tail of the parameter list, `(, float scale)` or `()`; `OP` may use its names.

#define STRIP(...) __VA_ARGS__

#define UNARY_KERNEL(name, To, Ti, U, SHIFTED, EXTRA, OP)                                      \
    FULL_OCCUPANCY_KERNEL(BLOCK_THREADS<U>, name, (const Ti* x, To* y, i64 n, u32 before, u32 edges STRIP EXTRA)) { \
        elementwise<U, SHIFTED>(OP, Inputs<Ti, 1>{{x}}, y, n, before, edges);                  \
    }
#define BINARY_KERNEL(name, T, U, SHIFTED, EXTRA, OP)                                          \
    FULL_OCCUPANCY_KERNEL(BLOCK_THREADS<U>, name,                                              \
                          (const T* a, const T* b, T* y, i64 n, u32 before, u32 edges STRIP EXTRA)) { \
        elementwise<U, SHIFTED>(OP, Inputs<T, 2>{{a, b}}, y, n, before, edges);                \
    }
// A thread an element: the plain form that articles start from.
#define UNARY_SCALAR_KERNEL(name, T, OP)                                                       \
    FULL_OCCUPANCY_KERNEL(PLAIN_THREADS, name, (const T* x, T* y, i64 n)) {                    \
        const i64 i = static_cast<i64>(blockIdx.x) * PLAIN_THREADS + threadIdx.x;              \
        if (i < n) y[i] = apply_one<T>(OP, Inputs<T, 1>{{x}}, i);                              \
    }
#define BINARY_SCALAR_KERNEL(name, T, OP)                                                      \
    FULL_OCCUPANCY_KERNEL(PLAIN_THREADS, name, (const T* a, const T* b, T* y, i64 n)) {        \
        const i64 i = static_cast<i64>(blockIdx.x) * PLAIN_THREADS + threadIdx.x;              \
        if (i < n) y[i] = apply_one<T>(OP, Inputs<T, 2>{{a, b}}, i);                           \
    }

// The shapes that `tiling.py` chooses among: 1, 2 or 4 vectors a thread. Four leave few registers for
// arithmetic, so an operation with much of it takes the first two.
#define UNARY_KERNELS_TO_X2(name, suffix, To, Ti, EXTRA, OP)                                   \
    UNARY_KERNEL(name##_x1_##suffix, To, Ti, 1, false, EXTRA, OP)                              \
    UNARY_KERNEL(name##_x2_##suffix, To, Ti, 2, false, EXTRA, OP)                              \
    UNARY_KERNEL(name##_shifted_x1_##suffix, To, Ti, 1, true, EXTRA, OP)                       \
    UNARY_KERNEL(name##_shifted_x2_##suffix, To, Ti, 2, true, EXTRA, OP)
#define UNARY_KERNELS(name, suffix, To, Ti, EXTRA, OP)                                         \
    UNARY_KERNELS_TO_X2(name, suffix, To, Ti, EXTRA, OP)                                       \
    UNARY_KERNEL(name##_x4_##suffix, To, Ti, 4, false, EXTRA, OP)
#define BINARY_KERNELS(name, suffix, T, EXTRA, OP)                                             \
    BINARY_KERNEL(name##_x1_##suffix, T, 1, false, EXTRA, OP)                                  \
    BINARY_KERNEL(name##_x2_##suffix, T, 2, false, EXTRA, OP)                                  \
    BINARY_KERNEL(name##_shifted_x1_##suffix, T, 1, true, EXTRA, OP)
