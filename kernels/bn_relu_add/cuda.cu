// Batch norm of inference, residual and ReLU: y = max(x * scale[c] + shift[c] + residual, 0).
//
// The arithmetic is fp32, rounded once. NaN stays NaN; -0.0 becomes +0.0. An element's channel is
// (e / plane) % channels: plane is H * W in NCHW and 1 in NHWC.
#include "elementwise.cuh"

template <class T> struct BnReluAdd {
    const float* scale;
    const float* shift;
    u32 channels, plane;

    // A launch has fewer than 2^32 elements, so that this division is a short one.
    __device__ __forceinline__ u32 channel(i64 e) const {
        return static_cast<u32>(e) / plane % channels;
    }
    __device__ __forceinline__ float one(float x, float r, u32 c) const {
        return relu(fmaf(x, scale[c], shift[c]) + r);
    }
    // A table may be a slice of another tensor.
    __device__ __forceinline__ bool vector_tables() const {
        return ((reinterpret_cast<u64>(scale) | reinterpret_cast<u64>(shift)) & 15) == 0;
    }
};

// The form of cut tiles: channel by channel, in few registers.
template <class T> struct InCutTile : BnReluAdd<T> {
    __device__ __forceinline__ InCutTile(const BnReluAdd<T>& op) : BnReluAdd<T>(op) {}
};
template <class T> __device__ __forceinline__ InCutTile<T> in_cut_tile(const BnReluAdd<T>& op) {
    return op;
}

// Channels of neighbouring elements, without a division for each.
template <class T> struct Walk {
    u32 c, left, channels, plane;
    __device__ __forceinline__ Walk(const BnReluAdd<T>& op, i64 e)
        : c(op.channel(e)), left(1), channels(op.channels), plane(op.plane) {
        if (plane > 1) left = plane - static_cast<u32>(e) % plane;
    }
    // Whether the next element has another channel.
    __device__ __forceinline__ bool next() {
        if (--left) return false;
        left = plane;
        c = c + 1 == channels ? 0 : c + 1;
        return true;
    }
};

__device__ __forceinline__ void unpack(u32 w, float (&v)[1], float) { v[0] = bit_cast<float>(w); }
template <class T> __device__ __forceinline__ void unpack(u32 w, float (&v)[2], T) {
    const float2 pair = widen(bit_cast<LaneOf<T>>(w));
    v[0] = pair.x, v[1] = pair.y;
}
__device__ __forceinline__ u32 pack(const float (&v)[1], float) { return bit_cast<u32>(v[0]); }
template <class T> __device__ __forceinline__ u32 pack(const float (&v)[2], T) {
    return bit_cast<u32>(narrow<LaneOf<T>>(make_float2(v[0], v[1])));
}

template <class To, class Ti, class T>
__device__ __forceinline__ To apply_one(const BnReluAdd<T>& op, const Inputs<Ti, 2>& in, i64 e) {
    const u32 c = op.channel(e);
    return static_cast<To>(op.one(static_cast<float>(in.p[0][e]), static_cast<float>(in.p[1][e]), c));
}

template <class T, int W>
__device__ __forceinline__ Words<W> walk(const BnReluAdd<T>& op, const Words<W> (&in)[2], i64 e) {
    constexpr int E = 4 / sizeof(T);  // elements a word
    Words<W> out;
    Walk<T> at(op, e);
    float s = op.scale[at.c], t = op.shift[at.c];
#pragma unroll
    for (int k = 0; k < W; ++k) {
        float x[E], r[E];
        unpack(in[0].w[k], x, T{}), unpack(in[1].w[k], r, T{});
#pragma unroll
        for (int i = 0; i < E; ++i) {
            x[i] = relu(fmaf(x[i], s, t) + r[i]);
            if (at.next()) s = op.scale[at.c], t = op.shift[at.c];
        }
        out.w[k] = pack(x, T{});
    }
    return out;
}

template <class To, class Ti, class T, int W>
__device__ __forceinline__ Words<W> apply_granule(const InCutTile<T>& op, const Words<W> (&in)[2], i64 e) {
    return walk(static_cast<const BnReluAdd<T>&>(op), in, e);
}
template <class To, class Ti, class T, int W>
__device__ __forceinline__ Words<W> apply_granule(const BnReluAdd<T>& op, const Words<W> (&in)[2], i64 e) {
    constexpr int E = 4 / sizeof(T);
    const u32 first = op.channel(e);
    const bool whole = first % 4 == 0 && op.channels % 4 == 0 && first + W * E <= op.channels;
    if (op.plane != 1 || !whole || !op.vector_tables()) return walk(op, in, e);
    // All channels of the granule at hand as 16-byte vectors of the two tables.
    Words<W> out;
#pragma unroll
    for (int k = 0; k < W; k += 4 / E) {
        const float4 s = *reinterpret_cast<const float4*>(op.scale + first + k * E);
        const float4 t = *reinterpret_cast<const float4*>(op.shift + first + k * E);
        const float sv[4] = {s.x, s.y, s.z, s.w}, tv[4] = {t.x, t.y, t.z, t.w};
#pragma unroll
        for (int j = 0; j < 4 / E; ++j) {
            float x[E], r[E];
            unpack(in[0].w[k + j], x, T{}), unpack(in[1].w[k + j], r, T{});
#pragma unroll
            for (int i = 0; i < E; ++i) x[i] = relu(fmaf(x[i], sv[j * E + i], tv[j * E + i]) + r[i]);
            out.w[k + j] = pack(x, T{});
        }
    }
    return out;
}

// Two vectors a thread would need more registers than full occupancy leaves.
#define EXTRA (, const float* scale, const float* offset, u32 channels, u32 plane)
#define BN_RELU_ADD(T, suffix)                                                                 \
    BINARY_KERNEL(bn_relu_add_x1_##suffix, T, 1, false, EXTRA,                                 \
                  (BnReluAdd<T>{scale, offset, channels, plane}))                              \
    BINARY_KERNEL(bn_relu_add_shifted_x1_##suffix, T, 1, true, EXTRA,                          \
                  (BnReluAdd<T>{scale, offset, channels, plane}))
BN_RELU_ADD(float, f32)
BN_RELU_ADD(__half, f16)
BN_RELU_ADD(__nv_bfloat16, bf16)
