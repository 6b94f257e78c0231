// The parts of CUDA that the kernels use, for g++: a launch is a loop over blocks (OpenMP) and,
// inside a block, over its threads. Kernels whose threads meet run each thread as a fiber, so that
// barriers and shuffles order them as on a GPU; a barrier that not all threads reach is an error.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#undef __shared__
#undef __global__
#undef __device__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
// A block runs on one operating-system thread, so storage per such thread is storage per block.
#define __shared__ static thread_local
#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)

static thread_local uint3 threadIdx, blockIdx;
static thread_local dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace host {

constexpr unsigned MAX_THREADS = 1024;
constexpr size_t STACK_BYTES = 64 * 1024;

struct Launch {
    unsigned grid[3], block[3];
};

// ---- fibers ------------------------------------------------------------------------------------

// A meeting point: `waiting` threads have arrived in this round; a full round starts the next one.
struct Barrier {
    unsigned waiting = 0, round = 0;
    unsigned long long published[32];  // what the lanes of a warp show each other
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool finished;
};

struct Block {
    std::vector<Fiber> fibers;
    ucontext_t scheduler;
    Barrier all, warps[MAX_THREADS / 32];
    unsigned threads = 0, current = 0, live = 0, live_in_warp[MAX_THREADS / 32];
    bool progress = false;
    void (*body)(const void*) = nullptr;
    const void* arguments = nullptr;
};

static thread_local Block* current_block = nullptr;

[[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "host run of a kernel: %s (block %u,%u thread %u)\n", what, blockIdx.x,
                 blockIdx.y, threadIdx.x);
    std::abort();
}

static inline Block& meeting_block() {
    if (!current_block) fail("threads meet in a kernel that was not declared COOPERATIVE_KERNEL");
    return *current_block;
}

static inline void yield() {
    Block& block = *current_block;
    swapcontext(&block.fibers[block.current].context, &block.scheduler);
}

static inline void open_if_full(Block& block, Barrier& barrier, unsigned expected) {
    if (barrier.waiting && barrier.waiting >= expected) {
        barrier.waiting = 0;
        ++barrier.round;
        block.progress = true;
    }
}

static inline void meet(Barrier& barrier, unsigned expected) {
    Block& block = meeting_block();
    const unsigned round = barrier.round;
    ++barrier.waiting;
    block.progress = true;
    open_if_full(block, barrier, expected);
    while (barrier.round == round) yield();
}

static void fiber_main() {
    Block& block = *current_block;
    block.body(block.arguments);
    Fiber& fiber = block.fibers[block.current];
    const unsigned warp = block.current / 32;
    fiber.finished = true;
    block.progress = true;
    --block.live;
    --block.live_in_warp[warp];
    // On a GPU a thread that has left no longer counts at a barrier.
    open_if_full(block, block.all, block.live);
    open_if_full(block, block.warps[warp], block.live_in_warp[warp]);
    yield();
}

static inline void select_thread(unsigned index) {
    threadIdx.x = index % blockDim.x;
    threadIdx.y = index / blockDim.x % blockDim.y;
    threadIdx.z = index / (blockDim.x * blockDim.y);
}

static void start_fiber(Block& block, unsigned index) {
    Fiber& fiber = block.fibers[index];
    if (!fiber.stack) fiber.stack.reset(new char[STACK_BYTES]);
    fiber.finished = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = STACK_BYTES;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
}

[[maybe_unused]] static void run_fibers(unsigned threads, void (*body)(const void*), const void* arguments) {
    static thread_local Block block;
    if (block.fibers.size() < threads) block.fibers.resize(threads);
    block.threads = block.live = threads;
    block.body = body;
    block.arguments = arguments;
    block.all.waiting = 0;
    for (unsigned w = 0; w * 32 < threads; ++w) {
        block.warps[w].waiting = 0;
        block.live_in_warp[w] = threads - w * 32 < 32 ? threads - w * 32 : 32;
    }
    for (unsigned t = 0; t < threads; ++t) start_fiber(block, t);
    current_block = &block;
    while (block.live) {
        block.progress = false;
        for (unsigned t = 0; t < threads; ++t) {
            if (block.fibers[t].finished) continue;
            block.current = t;
            select_thread(t);
            swapcontext(&block.scheduler, &block.fibers[t].context);
        }
        if (!block.progress) fail("a barrier that not all of its threads reach");
    }
    current_block = nullptr;
}

// ---- launch ------------------------------------------------------------------------------------

// The next argument of a buffer packed as the CUDA driver packs it: each at its natural alignment.
template <class T> T take(const char* buffer, size_t& at) {
    static_assert(std::is_trivially_copyable_v<T>);
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    T value;
    std::memcpy(static_cast<void*>(&value), buffer + at, sizeof(T));
    at += sizeof(T);
    return value;
}

template <auto KERNEL_FUNCTION, class... A> struct Body {
    static void call(const void* arguments) {
        std::apply(KERNEL_FUNCTION, *static_cast<const std::tuple<A...>*>(arguments));
    }
};

static inline void set_block(const Launch& launch, long long index) {
    gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
    blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
    blockIdx.x = static_cast<unsigned>(index % launch.grid[0]);
    blockIdx.y = static_cast<unsigned>(index / launch.grid[0] % launch.grid[1]);
    blockIdx.z = static_cast<unsigned>(index / launch.grid[0] / launch.grid[1]);
}

// Gives a thread its storage. A C library before glibc 2.40 does that at the first use, in a call that
// the compiler takes to leave the vector registers alone and that does not (its bug 31372): what lay
// in them is lost. So the first use is here, in a call that may change them.
__attribute__((noinline, noipa)) static void take_storage() {
    asm volatile("" : : "r"(&threadIdx) : "memory");
}

template <auto KERNEL_FUNCTION, bool COOPERATIVE, class... A>
__noinline__ void run_blocks(const Launch& shared_launch, const std::tuple<A...>& shared, long long blocks) {
    const Launch launch = shared_launch;
    const std::tuple<A...> arguments = shared;  // its own: no store of the kernel changes these
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
#pragma omp for schedule(static) nowait
    for (long long index = 0; index < blocks; ++index) {
        set_block(launch, index);
        if constexpr (COOPERATIVE) {
            run_fibers(threads, Body<KERNEL_FUNCTION, A...>::call, &arguments);
        } else {
            for (threadIdx.z = 0; threadIdx.z < launch.block[2]; ++threadIdx.z)
                for (threadIdx.y = 0; threadIdx.y < launch.block[1]; ++threadIdx.y)
                    for (threadIdx.x = 0; threadIdx.x < launch.block[0]; ++threadIdx.x)
                        std::apply(KERNEL_FUNCTION, arguments);
        }
    }
}

template <auto KERNEL_FUNCTION, bool COOPERATIVE, class... A>
void run(const Launch& launch, const char* packed, void (*)(A...)) {
    size_t at = 0;
    const std::tuple<A...> arguments{take<A>(packed, at)...};
    const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
    const long long blocks = 1LL * launch.grid[0] * launch.grid[1] * launch.grid[2];
    if (threads > MAX_THREADS) fail("a launch beyond CUDA's limits");
    // Waking the other cores costs more than a few thousand plain threads do; fibers cost far more.
#pragma omp parallel if (COOPERATIVE ? blocks > 16 : blocks * threads > 1 << 15)
    {
        take_storage();
        run_blocks<KERNEL_FUNCTION, COOPERATIVE>(launch, arguments, blocks);
    }
}

// ---- warps -------------------------------------------------------------------------------------

static inline unsigned lane() { return meeting_block().current % 32; }

static inline unsigned expected_lanes(unsigned mask) {
    Block& block = meeting_block();
    const unsigned named = static_cast<unsigned>(__builtin_popcount(mask));
    const unsigned live = block.live_in_warp[block.current / 32];
    return named < live ? named : live;
}

// What `source` lane of the warp holds in `value`; every lane in `mask` must call.
template <class T> T exchange(unsigned mask, T value, unsigned source) {
    static_assert(sizeof(T) <= 8);
    Barrier& warp = meeting_block().warps[meeting_block().current / 32];
    std::memcpy(&warp.published[lane()], &value, sizeof(T));
    meet(warp, expected_lanes(mask));
    T result;
    std::memcpy(static_cast<void*>(&result), &warp.published[source], sizeof(T));
    meet(warp, expected_lanes(mask));
    return result;
}

}  // namespace host

#define BANDWATCH_KERNEL(name, parameters, cooperative)                                        \
    static void name parameters;                                                               \
    extern "C" __attribute__((visibility("default"))) void host_##name(                        \
        const host::Launch* launch, const char* packed) {                                      \
        host::run<&name, cooperative>(*launch, packed, &name);                                 \
    }                                                                                          \
    static void name parameters
#define KERNEL(threads, name, parameters) BANDWATCH_KERNEL(name, parameters, false)
#define FULL_OCCUPANCY_KERNEL(threads, name, parameters) KERNEL(threads, name, parameters)
#define COOPERATIVE_KERNEL(threads, name, parameters) BANDWATCH_KERNEL(name, parameters, true)

// ---- intrinsics --------------------------------------------------------------------------------

static inline void __syncthreads() {
    host::meet(host::meeting_block().all, host::meeting_block().live);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    host::Block& block = host::meeting_block();
    host::meet(block.warps[block.current / 32], host::expected_lanes(mask));
}
template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    const int lane = static_cast<int>(host::lane());
    return host::exchange(mask, value, static_cast<unsigned>(lane / width * width + source % width));
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned lane = host::lane(), first = lane / width * width;
    return host::exchange(mask, value, lane - first < delta ? lane : lane - delta);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    const unsigned lane = host::lane(), end = lane / width * width + width;
    return host::exchange(mask, value, lane + delta >= end ? lane : lane + delta);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    const unsigned lane = host::lane(), source = lane ^ static_cast<unsigned>(bits);
    return host::exchange(mask, value, source / width == lane / width ? source : lane);
}

template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldlu(const T* p) { return *p; }
template <class T> void __stcs(T* p, T value) { *p = value; }
template <class T> void __stcg(T* p, T value) { *p = value; }
template <class T> void __stwt(T* p, T value) { *p = value; }

static inline void store_global(uint4* p, uint4 v) { *p = v; }
static inline void store_global(uint2* p, uint2 v) { *p = v; }

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32) | low) >> (shift & 31));
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((((static_cast<unsigned long long>(high) << 32) | low) << (shift & 31)) >> 32);
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long bytes = (static_cast<unsigned long long>(b) << 32) | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned nibble = selector >> (4 * i) & 0xf;
        unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7))) & 0xff;
        if (nibble & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
static inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
static inline int __float_as_int(float value) { return static_cast<int>(__float_as_uint(value)); }
static inline float __int_as_float(int bits) { return __uint_as_float(static_cast<unsigned>(bits)); }
// glibc declares a vector variant of exp under this name.
static inline float host_expf(float x) { return std::exp(x); }
#define __expf host_expf
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float x) { return !(x > 0.0f) ? 0.0f : x > 1.0f ? 1.0f : x; }
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }
using std::fmaf;
