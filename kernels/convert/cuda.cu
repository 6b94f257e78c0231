// Conversion between fp32 and the half types, rounded to nearest even (rn), towards zero (rz), up
// (ru) or down (rd). Widening is exact. The wider side moves 16 bytes a granule, the other 8.
#include "elementwise.cuh"

template <class To> struct Rn;
template <class To> struct Rz;
template <class To> struct Ru;
template <class To> struct Rd;
#define ROUNDING(Name, To, intrinsic)                                         \
    template <> struct Name<To> {                                             \
        using Narrow = To;                                                    \
        __device__ To operator()(float v) const { return intrinsic(v); }      \
    };
ROUNDING(Rn, __half, __float2half_rn)
ROUNDING(Rz, __half, __float2half_rz)
ROUNDING(Ru, __half, __float2half_ru)
ROUNDING(Rd, __half, __float2half_rd)
ROUNDING(Rn, __nv_bfloat16, __float2bfloat16_rn)
ROUNDING(Rz, __nv_bfloat16, __float2bfloat16_rz)
ROUNDING(Ru, __nv_bfloat16, __float2bfloat16_ru)
ROUNDING(Rd, __nv_bfloat16, __float2bfloat16_rd)

template <class Rounding> struct Narrowing : Rounding {};
template <class T> struct Widening {};

__device__ __forceinline__ unsigned short bits(__half v) { return __half_as_ushort(v); }
__device__ __forceinline__ unsigned short bits(__nv_bfloat16 v) { return __bfloat16_as_ushort(v); }

template <class To, class Ti, class R>
__device__ __forceinline__ To apply_one(const Narrowing<R>& round, const Inputs<Ti, 1>& in, i64 e) {
    return round(in.p[0][e]);
}
template <class To, class Ti, class R>
__device__ __forceinline__ Words<2> apply_granule(const Narrowing<R>& round, const Words<4> (&in)[1], i64) {
    Words<2> out;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        out.w[k] = bits(round(bit_cast<float>(in[0].w[2 * k]))) |
                   static_cast<u32>(bits(round(bit_cast<float>(in[0].w[2 * k + 1])))) << 16;
    }
    return out;
}

template <class To, class Ti, class T>
__device__ __forceinline__ To apply_one(const Widening<T>&, const Inputs<Ti, 1>& in, i64 e) {
    return static_cast<float>(in.p[0][e]);
}
template <class To, class Ti, class T>
__device__ __forceinline__ Words<4> apply_granule(const Widening<T>&, const Words<2> (&in)[1], i64) {
    Words<4> out;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        const float2 pair = widen(bit_cast<LaneOf<T>>(in[0].w[k]));
        out.w[2 * k] = bit_cast<u32>(pair.x), out.w[2 * k + 1] = bit_cast<u32>(pair.y);
    }
    return out;
}

// Narrowing reads twice what it writes and widening half, so that tiles of two or four vectors of the
// wider side take the place of a copy's one.
#define CONVERT(name, suffix, To, Ti, OP)                    \
    UNARY_KERNEL(name##_x2_##suffix, To, Ti, 2, false, (), OP) \
    UNARY_KERNEL(name##_x4_##suffix, To, Ti, 4, false, (), OP) \
    UNARY_KERNEL(name##_shifted_x2_##suffix, To, Ti, 2, true, (), OP)
#define NARROW(T, suffix)                                       \
    CONVERT(convert_rn, suffix, T, float, Narrowing<Rn<T>>{}) \
    CONVERT(convert_rz, suffix, T, float, Narrowing<Rz<T>>{}) \
    CONVERT(convert_ru, suffix, T, float, Narrowing<Ru<T>>{}) \
    CONVERT(convert_rd, suffix, T, float, Narrowing<Rd<T>>{})
NARROW(__half, f32_f16)
NARROW(__nv_bfloat16, f32_bf16)
CONVERT(convert, f16_f32, float, __half, Widening<__half>{})
CONVERT(convert, bf16_f32, float, __nv_bfloat16, Widening<__nv_bfloat16>{})
UNARY_KERNEL(convert_x1_f16_f32, float, __half, 1, false, (), Widening<__half>{})
UNARY_KERNEL(convert_x1_bf16_f32, float, __nv_bfloat16, 1, false, (), Widening<__nv_bfloat16>{})
