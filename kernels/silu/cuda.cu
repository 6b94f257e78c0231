// SiLU: y = x * sigmoid(x), in fp32 for every element type, rounded once.
#include "elementwise.cuh"

// With t = exp(-|x|) in [0, 1] nothing overflows: sigmoid(x) is 1 / (1 + t) for x >= 0 and t / (1 + t)
// below. NaN stays NaN; -inf gives NaN, as x * sigmoid(x) does.
#ifndef SILU_DIVIDES
#define SILU_DIVIDES 0  // to measure the form of before: __expf and __fdividef
#endif

// 1 / y for y in [1, 2], so that none of what a division checks can be: within 2^-23 of it (PTX ISA).
__device__ __forceinline__ float reciprocal(float y) {
#ifdef BANDWATCH_HOST
    return 1.0f / y;
#else
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
    return r;
#endif
}

// 2^a for a <= 0: within 2^-22 of it (PTX ISA), and 0 below 2^-126.
__device__ __forceinline__ float power_of_two(float a) {
#ifdef BANDWATCH_HOST
    return exp2f(a);
#else
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
#endif
}

template <class T> struct Silu {
    using L = LaneOf<T>;
    // t is the square of its root, which is no less than 2^-126 where t is not nothing: so a small
    // result is not flushed. The exponent errs by |x| x 2^-23: far below half a unit of these types.
    __device__ static float one(float x) {
#if SILU_DIVIDES
        const float t = __expf(-fabsf(x));
        return __fdividef(x >= 0.0f ? x : x * t, 1.0f + t);
#else
        const float root = power_of_two(-0.72134752f * fabsf(x));  // log2(e) / 2
        return (x >= 0.0f ? x : x * root * root) * reciprocal(fmaf(root, root, 1.0f));
#endif
    }
    __device__ L operator()(L v) const {
        const float2 x = widen(v);
        return narrow<L>(make_float2(one(x.x), one(x.y)));
    }
};
template <> struct Silu<float> {
    __device__ float operator()(float x) const {
        const float t = expf(-fabsf(x));
#if SILU_DIVIDES
        return __fdividef(x >= 0.0f ? x : x * t, 1.0f + t);
#else
        return (x >= 0.0f ? x : x * t) * reciprocal(1.0f + t);
#endif
    }
};

UNARY_KERNELS(silu, f32, float, float, (), Silu<float>{})
// Four vectors a thread would need more registers than full occupancy leaves (on sm_80).
UNARY_KERNELS_TO_X2(silu, f16, __half, __half, (), Silu<__half>{})
UNARY_KERNELS_TO_X2(silu, bf16, __nv_bfloat16, __nv_bfloat16, (), Silu<__nv_bfloat16>{})
