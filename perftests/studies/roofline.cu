// K multiply-adds an element on one read and one write: intensities that trace the roofline. The
// compiler of the GPU fuses them; a CPU's may not, so that it can use vectors.
#include "prelude.cuh"

#define CURVE_THREADS 256

// Four independent chains a thread hide the latency of an addition. `n` is a multiple of four.
template <int K>
__device__ __forceinline__ void chain(const float4* x, float4* y, i64 n, float a, float b) {
    const i64 i = static_cast<i64>(blockIdx.x) * CURVE_THREADS + threadIdx.x;
    if (i >= n / 4) return;
    float4 v = x[i];
#pragma unroll 32
    for (int k = 0; k < K; ++k) {
        v.x = v.x * a + b;
        v.y = v.y * a + b;
        v.z = v.z * a + b;
        v.w = v.w * a + b;
    }
    y[i] = v;
}

#define CURVE(K)                                                                                  \
    KERNEL(CURVE_THREADS, fma_##K, (const float4* x, float4* y, i64 n, float a, float b)) {       \
        chain<K>(x, y, n, a, b);                                                                  \
    }

CURVE(1)
CURVE(2)
CURVE(4)
CURVE(8)
CURVE(16)
CURVE(32)
CURVE(64)
CURVE(128)
CURVE(256)
CURVE(512)
