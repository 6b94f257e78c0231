"""Faulty kernels, as published and as feared: what shows that each sanitizer sees its fault.

Each source has one kernel `planted(const float* x, float* y, i64 n)` of 256 threads a block.
"""

PAST_THE_END = r"""
#include "prelude.cuh"
// As published: a grid-stride loop over float4 that rounds the number of vectors up.
KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    for (i64 i = blockIdx.x * 256 + threadIdx.x; i < (n + 3) / 4; i += gridDim.x * 256) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        v.x = v.x > 0 ? v.x : 0, v.y = v.y > 0 ? v.y : 0;
        v.z = v.z > 0 ? v.z : 0, v.w = v.w > 0 ? v.w : 0;
        reinterpret_cast<float4*>(y)[i] = v;
    }
}
"""
ODD_ADDRESS = r"""
#include "prelude.cuh"
// As published: pixels of three floats through float4, so most addresses are no multiple of 16.
KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    const i64 i = (blockIdx.x * 256 + threadIdx.x) * 3;
    if (i + 4 > n) return;
    const float4 v = *reinterpret_cast<const float4*>(x + i);
    y[i] = v.x, y[i + 1] = v.y, y[i + 2] = v.z;
}
"""
ONE_BEFORE = r"""
#include "prelude.cuh"
KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    const i64 i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] + x[i - 1];
}
"""
NO_BARRIER = r"""
#include "prelude.cuh"
// A tile that is read before the other warps have written their parts of it.
COOPERATIVE_KERNEL(256, planted, (const float* x, float* y, i64 n)) {
    __shared__ float stage[256];
    const int t = threadIdx.x;
    stage[t] = t < n ? x[t] : 0.0f;
    if (t < n) y[t] = stage[255 - t];
}
"""
