// Scale and ReLU: y = max(x * scale, 0), the product in fp32. NaN stays NaN; -0.0 becomes +0.0.
#include "elementwise.cuh"

template <class T> struct ScaleRelu {
    float scale;
    __device__ LaneOf<T> operator()(LaneOf<T> v) const {
        return in_fp32(v, [this](float x) { return relu(x * scale); });
    }
};

UNARY_KERNELS(scale_relu, f32, float, float, (, float scale), (ScaleRelu<float>{scale}))
UNARY_KERNELS(scale_relu, f16, __half, __half, (, float scale), (ScaleRelu<__half>{scale}))
UNARY_KERNELS(scale_relu, bf16, __nv_bfloat16, __nv_bfloat16, (, float scale),
              (ScaleRelu<__nv_bfloat16>{scale}))
