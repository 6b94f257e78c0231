// ReLU in every launch shape: THREADS (a build's own) x 1, 2, 4 or 8 vectors of 16 bytes a thread.
// Registers are the compiler's choice here: what occupancy they leave is part of the question.
#include "elementwise.cuh"

template <class T> struct Relu;
template <> struct Relu<float> {
    __device__ float operator()(float v) const { return v <= 0.0f ? 0.0f : v; }
};
template <> struct Relu<__half> {
    __device__ __half2 operator()(__half2 v) const { return __hmax2_nan(__float2half2_rn(0.0f), v); }
};

#define SHAPE(loads, T, suffix)                                                              \
    KERNEL(THREADS, sweep_x##loads##_##suffix,                                               \
           (const T* x, T* y, i64 n, u32 before, u32 edges)) {                               \
        elementwise<loads, false>(Relu<T>{}, Inputs<T, 1>{{x}}, y, n, before, edges);        \
    }
#define SHAPES(T, suffix) SHAPE(1, T, suffix) SHAPE(2, T, suffix) SHAPE(4, T, suffix) SHAPE(8, T, suffix)

SHAPES(float, f32)
SHAPES(__half, f16)
