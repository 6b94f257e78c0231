// ReLU: y = max(x, 0). NaN stays NaN; -0.0 becomes +0.0.
#include "elementwise.cuh"

template <class T> struct Relu;
template <> struct Relu<float> {
    __device__ float operator()(float v) const { return relu(v); }
};
// Zero comes first: on a CPU, where the header computes it, the first of two equal zeros is taken.
template <> struct Relu<__half> {
    __device__ __half2 operator()(__half2 v) const { return __hmax2_nan(__float2half2_rn(0.0f), v); }
};
template <> struct Relu<__nv_bfloat16> {
    __device__ __nv_bfloat162 operator()(__nv_bfloat162 v) const {
        return __hmax2_nan(__float2bfloat162_rn(0.0f), v);
    }
};

#define RELU(T, suffix)                                  \
    UNARY_SCALAR_KERNEL(relu_scalar_##suffix, T, Relu<T>{}) \
    UNARY_KERNELS(relu, suffix, T, T, (), Relu<T>{})

RELU(float, f32)
RELU(__half, f16)
RELU(__nv_bfloat16, bf16)
