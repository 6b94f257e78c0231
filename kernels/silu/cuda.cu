// SiLU: y = x * sigmoid(x), in fp32 for every element type, rounded once.
#include "elementwise.cuh"

// With t = exp(-|x|) in [0, 1] nothing overflows and the division is by a number in [1, 2], where the
// fast one is good to 2 ulp: sigmoid(x) is 1 / (1 + t) for x >= 0 and t / (1 + t) below.
// NaN stays NaN; -inf gives NaN, as x * sigmoid(x) does.
__device__ __forceinline__ float silu(float x, float t) {
    return __fdividef(x >= 0.0f ? x : x * t, 1.0f + t);
}

template <class T> struct Silu {
    using L = LaneOf<T>;
    // The fast exponential errs by |x| x 2^-24 of the result: far below half a unit of these types.
    __device__ L operator()(L v) const {
        const float2 x = widen(v);
        return narrow<L>(make_float2(silu(x.x, __expf(-fabsf(x.x))), silu(x.y, __expf(-fabsf(x.y)))));
    }
};
template <> struct Silu<float> {
    __device__ float operator()(float x) const { return silu(x, expf(-fabsf(x))); }
};

UNARY_KERNELS(silu, f32, float, float, (), Silu<float>{})
// Four vectors a thread would need more registers than full occupancy leaves (on sm_80).
UNARY_KERNELS_TO_X2(silu, f16, __half, __half, (), Silu<__half>{})
UNARY_KERNELS_TO_X2(silu, bf16, __nv_bfloat16, __nv_bfloat16, (), Silu<__nv_bfloat16>{})
