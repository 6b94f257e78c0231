// The fused transform in the forms that people write it in, a thread a pixel: for the study of their
// accuracy. The build chooses the types IN and OUT, and whether --use_fast_math is on.
//
//   divided      t = (x - mean) / std, then t @ matrix
//   reciprocal   the same with t = (x - mean) * (1 / std), the reciprocal made on the host
//   folded       x @ weight + bias
//   half_divided, half_folded   the same with every step rounded to Out, as half arithmetic does
//
// Sums run over the channels in order, each step one fused multiply-add, so that a CPU and a GPU
// round alike.
#include "prelude.cuh"

using Byte = unsigned char;
using In = IN;
using Out = OUT;
constexpr int C = 3, D = 3, THREADS = 128;

struct Constants {
    float mean[C], std[C], inverse[C], matrix[C][D], weight[C][D], bias[D];
};

__device__ __forceinline__ float wide(float v) { return v; }
__device__ __forceinline__ float wide(__half v) { return __half2float(v); }
__device__ __forceinline__ float wide(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ __forceinline__ float wide(Byte v) { return static_cast<float>(v); }
__device__ __forceinline__ void put(float v, float* to) { *to = v; }
__device__ __forceinline__ void put(float v, __half* to) { *to = __float2half_rn(v); }
__device__ __forceinline__ void put(float v, __nv_bfloat16* to) { *to = __float2bfloat16_rn(v); }

// ---- arithmetic in fp32 ------------------------------------------------------------------------

// t @ m, from a bias on where there is one.
__device__ __forceinline__ void product(const float (&t)[C], const float (&m)[C][D], const float* bias, Out* y) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
        float sum = bias ? fmaf(t[0], m[0][d], bias[d]) : t[0] * m[0][d];
#pragma unroll
        for (int c = 1; c < C; ++c) sum = fmaf(t[c], m[c][d], sum);
        put(sum, y + d);
    }
}

__device__ __forceinline__ void divide(const In* x, Out* y, const Constants& k) {
    float t[C];
#pragma unroll
    for (int c = 0; c < C; ++c) t[c] = (wide(x[c]) - k.mean[c]) / k.std[c];
    product(t, k.matrix, nullptr, y);
}

__device__ __forceinline__ void multiply(const In* x, Out* y, const Constants& k) {
    float t[C];
#pragma unroll
    for (int c = 0; c < C; ++c) t[c] = (wide(x[c]) - k.mean[c]) * k.inverse[c];
    product(t, k.matrix, nullptr, y);
}

__device__ __forceinline__ void fold(const In* x, Out* y, const Constants& k) {
    float t[C];
#pragma unroll
    for (int c = 0; c < C; ++c) t[c] = wide(x[c]);
    product(t, k.weight, k.bias, y);
}

#define FORM(name, function)                                                        \
    KERNEL(THREADS, name, (const In* x, Out* y, i64 pixels, Constants k)) {         \
        const i64 p = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;         \
        if (p < pixels) function(x + p * C, y + p * D, k);                          \
    }
FORM(divided, divide)
FORM(reciprocal, multiply)
FORM(folded, fold)

// ---- arithmetic in the half type itself --------------------------------------------------------

#ifdef HALF_ARITHMETIC
#ifdef BANDWATCH_HOST
// The headers have no such step for a CPU. In double it rounds once more, which hardly ever shows.
static inline __half __hfma(__half a, __half b, __half c) {
    return __double2half(std::fma(double(wide(a)), double(wide(b)), double(wide(c))));
}
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
    return __double2bfloat16(std::fma(double(wide(a)), double(wide(b)), double(wide(c))));
}
#endif

__device__ __forceinline__ Out rounded(float v) {
    Out to;
    put(v, &to);
    return to;
}

__device__ __forceinline__ void half_product(const Out (&t)[C], const float (&m)[C][D], const float* bias, Out* y) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
        const Out first = rounded(m[0][d]);
        Out sum = bias ? __hfma(t[0], first, rounded(bias[d])) : __hmul(t[0], first);
#pragma unroll
        for (int c = 1; c < C; ++c) sum = __hfma(t[c], rounded(m[c][d]), sum);
        y[d] = sum;
    }
}

__device__ __forceinline__ void half_divide(const In* x, Out* y, const Constants& k) {
    Out t[C];
#pragma unroll
    for (int c = 0; c < C; ++c) t[c] = __hdiv(__hsub(x[c], rounded(k.mean[c])), rounded(k.std[c]));
    half_product(t, k.matrix, nullptr, y);
}

__device__ __forceinline__ void half_fold(const In* x, Out* y, const Constants& k) {
    Out t[C];
#pragma unroll
    for (int c = 0; c < C; ++c) t[c] = x[c];
    half_product(t, k.weight, k.bias, y);
}

FORM(half_divided, half_divide)
FORM(half_folded, half_fold)
#endif
