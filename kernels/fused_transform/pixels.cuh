// The affine map of a pixel, and how pixels lie in 32-bit words.
//
// One compilation serves one pair of types and one C x D: IN, OUT (float, __half, Byte), CHANNELS_IN
// and CHANNELS_OUT come from the host, and VECTORS, how much a thread takes at once. So every loop is
// unrolled and a coefficient is an operand from the constant bank, neither a register nor a load.
#pragma once
#include "memory.cuh"

using In = IN;
using Out = OUT;
constexpr int C = CHANNELS_IN;
constexpr int D = CHANNELS_OUT;
constexpr int IN_PIXEL = C * static_cast<int>(sizeof(In));     // bytes
constexpr int OUT_PIXEL = D * static_cast<int>(sizeof(Out));   // bytes

// y[d] = bias[d] + sum over c of x[c] * weight[c][d]; folded on the host in float64.
struct Affine {
    float weight[C][D];
    float bias[D];
};

// Rows of whole pixels, `pitch` bytes apart, in images of `rows`, `image` bytes apart. Contiguous images
// are one row, `blocks` of which 0 says that no block need find its row.
struct Layout {
    i64 pixels;
    i64 x_pitch, y_pitch;
    i64 x_image, y_image;
    u32 rows, blocks;
};

struct Row {
    const Byte* x;
    Byte* y;
    i64 pixels;
    u32 block;  // of this row's
};

__device__ __forceinline__ Row row_of_block(const Byte* x, Byte* y, const Layout& layout) {
    Row row{x, y, layout.pixels, blockIdx.x};
    if (layout.blocks) {
        const u32 index = blockIdx.x / layout.blocks, image = index / layout.rows;
        row.block = blockIdx.x - index * layout.blocks;
        row.x += (index - image * layout.rows) * layout.x_pitch + image * layout.x_image;
        row.y += (index - image * layout.rows) * layout.y_pitch + image * layout.y_image;
    }
    return row;
}

__device__ __forceinline__ float widen(float v) { return v; }
__device__ __forceinline__ float widen(__half v) { return __half2float(v); }
__device__ __forceinline__ float widen(Byte v) { return static_cast<float>(v); }
__device__ __forceinline__ void narrow(float v, float* to) { *to = v; }
__device__ __forceinline__ void narrow(float v, __half* to) { *to = __float2half_rn(v); }

__device__ __forceinline__ u32 bits_of(float v) { return __float_as_uint(v); }
__device__ __forceinline__ u32 bits_of(Byte v) { return v; }
__device__ __forceinline__ u32 bits_of(__half v) { return static_cast<__half_raw>(v).x; }

// The sum runs over c in order from the bias, one rounding a step.
__device__ __forceinline__ float weighted(const float (&x)[C], const Affine& map, int d) {
    float sum = map.bias[d];
#pragma unroll
    for (int c = 0; c < C; ++c) sum = fmaf(x[c], map.weight[c][d], sum);
    return sum;
}

// One pixel by accesses of single elements: right at every alignment of the elements.
__device__ __forceinline__ void read_pixel(const Byte* from, float (&x)[C]) {
    const In* in = reinterpret_cast<const In*>(from);
#pragma unroll
    for (int c = 0; c < C; ++c) x[c] = widen(in[c]);
}

__device__ __forceinline__ void write_pixel(const float (&x)[C], Byte* to, const Affine& map) {
    Out* out = reinterpret_cast<Out*>(to);
#pragma unroll
    for (int d = 0; d < D; ++d) narrow(weighted(x, map, d), out + d);
}

__device__ __forceinline__ void transform_pixel(const Byte* from, Byte* to, const Affine& map) {
    float x[C];
    read_pixel(from, x);
    write_pixel(x, to, map);
}

// The block's share of THREADS pixels of a row, a thread a pixel.
template <int THREADS> __device__ __forceinline__ void transform_scalar(const Row& row, const Affine& map) {
    const i64 p = static_cast<i64>(row.block) * THREADS + threadIdx.x;
    if (p < row.pixels) transform_pixel(row.x + p * IN_PIXEL, row.y + p * OUT_PIXEL, map);
}

// Element `i` of consecutive words; `i` is known when compiled.
template <int W> __device__ __forceinline__ float element(const u32 (&words)[W], int i) {
    if (sizeof(In) == 4) return __uint_as_float(words[i]);
    if (sizeof(In) == 1) return static_cast<float>(words[i / 4] >> (8 * (i % 4)) & 0xff);
    __half_raw raw;
    raw.x = static_cast<unsigned short>(words[i / 2] >> (16 * (i % 2)));
    return __half2float(__half(raw));
}

// Outputs as words.
template <int N> __device__ __forceinline__ void pack(const float (&v)[N], u32 (&words)[N * sizeof(Out) / 4]) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(N * sizeof(Out) / 4); ++i) {
        if (sizeof(Out) == 4) {
            words[i] = __float_as_uint(v[i]);
        } else {
            const __half2_raw raw = static_cast<__half2_raw>(__floats2half2_rn(v[2 * i], v[2 * i + 1]));
            words[i] = raw.x | static_cast<u32>(raw.y) << 16;
        }
    }
}

// P whole pixels from words to words.
template <int P>
__device__ __forceinline__ void transform_words(const u32 (&in)[P * IN_PIXEL / 4], u32 (&out)[P * OUT_PIXEL / 4],
                                                const Affine& map) {
    float y[P * D];
#pragma unroll
    for (int p = 0; p < P; ++p) {
        float x[C];
#pragma unroll
        for (int c = 0; c < C; ++c) x[c] = element(in, p * C + c);
#pragma unroll
        for (int d = 0; d < D; ++d) y[p * D + d] = weighted(x, map, d);
    }
    pack(y, out);
}

// W words in whole vectors.
template <int W> __device__ __forceinline__ void words_of_vectors(const Byte* from, u32 (&words)[W]) {
#pragma unroll
    for (int k = 0; k < W / 4; ++k) {
        const uint4 v = load16(from + 16 * k);
        words[4 * k] = v.x, words[4 * k + 1] = v.y, words[4 * k + 2] = v.z, words[4 * k + 3] = v.w;
    }
}

template <int W> __device__ __forceinline__ void put_words(const u32 (&words)[W], Byte* to) {
#pragma unroll
    for (int k = 0; k < W / 4; ++k) {
        store16(to + 16 * k, make_uint4(words[4 * k], words[4 * k + 1], words[4 * k + 2], words[4 * k + 3]));
    }
}

// W words that begin `shift` < 16 bytes into `raw`; a shift of an element's size never splits a word
// of fp32.
template <int W> __device__ __forceinline__ void shift_words(const u32 (&raw)[W + 4], u32 shift, u32 (&words)[W]) {
    u32 c[W + 4];
#pragma unroll
    for (int k = 0; k < W + 4; ++k) c[k] = raw[k];
#pragma unroll
    for (int k = 0; k < W + 2; ++k) c[k] = shift & 8 ? c[k + 2] : c[k];
#pragma unroll
    for (int k = 0; k < W + 1; ++k) c[k] = shift & 4 ? c[k + 1] : c[k];
#pragma unroll
    for (int k = 0; k < W; ++k) {
        words[k] = sizeof(In) == 4 ? c[k] : __funnelshift_r(c[k], c[k + 1], (shift & 3) * 8);
    }
}

// ---- where the vectors begin -------------------------------------------------------------------

// Outputs are written in whole lines from such a boundary (bytes), so no two blocks share a sector.
constexpr u32 BOUNDARY = 128;
constexpr u32 RESIDUES = BOUNDARY / sizeof(Out);
constexpr u32 EVEN = D & -D;  // the power of two in D: pixels reach a boundary only from multiples of it

// Inverse of an odd number by Newton: the number itself is right modulo 8, a step doubles the bits.
constexpr u32 ODD = D / EVEN;
constexpr u32 INVERSE_6_BITS = ODD * (2 - ODD * ODD);
constexpr u32 INVERSE = INVERSE_6_BITS * (2 - ODD * INVERSE_6_BITS);

// Elements of y before its first boundary.
__device__ __forceinline__ u32 elements_to_boundary(const Byte* y) {
    return (RESIDUES - static_cast<u32>(reinterpret_cast<u64>(y) % BOUNDARY / sizeof(Out))) % RESIDUES;
}

// Whole pixels before it: h with h * D = elements modulo RESIDUES. The host takes a path by whole pixels
// only when y lies on a multiple of EVEN elements.
__device__ __forceinline__ int pixels_to_boundary(const Byte* y) {
    return static_cast<int>(elements_to_boundary(y) / EVEN * INVERSE % (RESIDUES / EVEN));
}
