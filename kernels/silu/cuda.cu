// SiLU: y = x * sigmoid(x), in fp32 for every element type, rounded once.
#include "elementwise.cuh"

// With t = exp(-|x|) in [0, 1] nothing overflows: sigmoid(x) is 1 / (1 + t) for x >= 0 and t / (1 + t)
// below. NaN stays NaN; -inf gives NaN, as x * sigmoid(x) does.

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

// In the half types t is the square of its root, which is no less than 2^-126 where t is not nothing:
// so a small result is not flushed. The exponent errs by |x| x 2^-23, far below half a unit of theirs.
template <class T> struct Silu {
    __device__ static float one(float x) {
        const float root = power_of_two(-0.72134752f * fabsf(x));  // log2(e) / 2
        return (x >= 0.0f ? x : x * root * root) * reciprocal(fmaf(root, root, 1.0f));
    }
    __device__ LaneOf<T> operator()(LaneOf<T> v) const { return in_fp32(v, one); }
};
template <> struct Silu<float> {
    __device__ float operator()(float x) const {
        const float t = expf(-fabsf(x));
        return (x >= 0.0f ? x : x * t) * reciprocal(1.0f + t);
    }
};

UNARY_KERNELS(silu, f32, float, float, (), Silu<float>{})
// Four vectors a thread would need more registers than full occupancy leaves (on sm_80).
UNARY_KERNELS_TO_X2(silu, f16, __half, __half, (), Silu<__half>{})
UNARY_KERNELS_TO_X2(silu, bf16, __nv_bfloat16, __nv_bfloat16, (), Silu<__nv_bfloat16>{})
