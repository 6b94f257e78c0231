// Vector add: y = a + b, one IEEE rounding to nearest even, for every element type.
#include "elementwise.cuh"

template <class T> struct Add {
    using L = LaneOf<T>;
    // One addition computed in fp32 and rounded once equals the half intrinsic (24 >= 2 x 11 + 2).
    __device__ L operator()(L a, L b) const {
        const float2 p = widen(a), q = widen(b);
        return narrow<L>(make_float2(p.x + q.x, p.y + q.y));
    }
};
template <> struct Add<float> {
    __device__ float operator()(float a, float b) const { return a + b; }
};
template <> struct Add<__half> {
    __device__ __half2 operator()(__half2 a, __half2 b) const { return __hadd2(a, b); }
};

#define ADD(T, suffix)                                                        \
    BINARY_SCALAR_KERNEL(add_scalar_##suffix, T, Add<T>{})                    \
    BINARY_KERNEL(add_x1_##suffix, T, 1, false, Add<T>{})                     \
    BINARY_KERNEL(add_x2_##suffix, T, 2, false, Add<T>{})                     \
    BINARY_KERNEL(add_shifted_x1_##suffix, T, 1, true, Add<T>{})

ADD(float, f32)
ADD(__half, f16)
ADD(__nv_bfloat16, bf16)
