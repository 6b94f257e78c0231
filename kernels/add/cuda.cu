// Vector add: y = a + b, one IEEE rounding to nearest even, for every element type.
#include "elementwise.cuh"

template <class T> struct Add {
    using L = LaneOf<T>;
    __device__ L operator()(L a, L b) const { return __hadd2(a, b); }
};
template <> struct Add<float> {
    __device__ float operator()(float a, float b) const { return a + b; }
};

#define ADD(T, suffix) BINARY_KERNELS(add, suffix, T, (), Add<T>{})
ADD(float, f32)
ADD(__half, f16)
ADD(__nv_bfloat16, bf16)

// ---- the teaching ladder: one pack a thread, as the articles have it ---------------------------

__device__ __forceinline__ float plus(float a, float b) { return a + b; }
__device__ __forceinline__ float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float3 plus(float3 a, float3 b) {
    return make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
}
__device__ __forceinline__ float4 plus(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ __half plus(__half a, __half b) { return __hadd(a, b); }
__device__ __forceinline__ __half2 plus(__half2 a, __half2 b) { return __hadd2(a, b); }
__device__ __forceinline__ __nv_bfloat16 plus(__nv_bfloat16 a, __nv_bfloat16 b) { return __hadd(a, b); }
__device__ __forceinline__ __nv_bfloat162 plus(__nv_bfloat162 a, __nv_bfloat162 b) { return __hadd2(a, b); }

// Eight halves as the 16 bytes that one load moves.
template <class L> struct __align__(16) Eight {
    L pair[4];
};
template <class L> __device__ __forceinline__ Eight<L> plus(const Eight<L>& a, const Eight<L>& b) {
    return {{plus(a.pair[0], b.pair[0]), plus(a.pair[1], b.pair[1]), plus(a.pair[2], b.pair[2]),
             plus(a.pair[3], b.pair[3])}};
}

// One PACK a thread; the thread whose pack the end cuts adds its elements one by one.
template <class PACK, class T>
__device__ __forceinline__ void add_packs(const T* a, const T* b, T* y, i64 n) {
    constexpr int K = sizeof(PACK) / sizeof(T);
    const i64 i = static_cast<i64>(blockIdx.x) * PLAIN_THREADS + threadIdx.x;
    if (i * K + K <= n) {
        if constexpr (sizeof(PACK) == 16) {  // as whole vectors: a struct of four would be four loads
            const uint4 p = reinterpret_cast<const uint4*>(a)[i], q = reinterpret_cast<const uint4*>(b)[i];
            const PACK sum = plus(bit_cast<PACK>(p), bit_cast<PACK>(q));
            store_global(reinterpret_cast<uint4*>(y) + i, bit_cast<uint4>(sum));
        } else {
            reinterpret_cast<PACK*>(y)[i] =
                plus(reinterpret_cast<const PACK*>(a)[i], reinterpret_cast<const PACK*>(b)[i]);
        }
        return;
    }
#pragma unroll 1
    for (i64 e = i * K; e < n; ++e) y[e] = plus(a[e], b[e]);
}

#define ADD_PACKS(name, T, PACK)                                              \
    KERNEL(PLAIN_THREADS, name, (const T* a, const T* b, T* y, i64 n)) { add_packs<PACK>(a, b, y, n); }

ADD_PACKS(add_float1_f32, float, float)
ADD_PACKS(add_float2_f32, float, float2)
ADD_PACKS(add_float3_f32, float, float3)
ADD_PACKS(add_float4_f32, float, float4)
ADD_PACKS(add_half_f16, __half, __half)
ADD_PACKS(add_half2_f16, __half, __half2)
ADD_PACKS(add_half8_f16, __half, Eight<__half2>)
ADD_PACKS(add_half_bf16, __nv_bfloat16, __nv_bfloat16)
ADD_PACKS(add_half2_bf16, __nv_bfloat16, __nv_bfloat162)
ADD_PACKS(add_half8_bf16, __nv_bfloat16, Eight<__nv_bfloat162>)
