// Scale and ReLU: y = max(x * scale, 0), the product in fp32. NaN stays NaN; -0.0 becomes +0.0.
#include "elementwise.cuh"

template <class T> struct ScaleRelu {
    using L = LaneOf<T>;
    float scale;
    __device__ float one(float x) const {
        const float v = x * scale;
        return v <= 0.0f ? 0.0f : v;  // not fmaxf: it would turn NaN into 0
    }
    __device__ L operator()(L v) const {
        const float2 x = widen(v);
        return narrow<L>(make_float2(one(x.x), one(x.y)));
    }
};
template <> struct ScaleRelu<float> {
    float scale;
    __device__ float operator()(float x) const {
        const float v = x * scale;
        return v <= 0.0f ? 0.0f : v;
    }
};

UNARY_KERNELS(scale_relu, f32, float, float, (, float scale), (ScaleRelu<float>{scale}))
UNARY_KERNELS(scale_relu, f16, __half, __half, (, float scale), (ScaleRelu<__half>{scale}))
UNARY_KERNELS(scale_relu, bf16, __nv_bfloat16, __nv_bfloat16, (, float scale),
              (ScaleRelu<__nv_bfloat16>{scale}))
