// Moves of 16 bytes between global and shared memory, each with its stand-in for the CPU.
//
// Global reads are never `.nc`: the output may be the input, and that path is not coherent. None has a
// cache hint: no_allocate cost the large sizes 2 % and a streaming store as much or nothing (H200).
#pragma once
#include "prelude.cuh"

using Byte = unsigned char;

__device__ __forceinline__ uint4 load16(const Byte* from) { return *reinterpret_cast<const uint4*>(from); }
__device__ __forceinline__ void store16(Byte* to, uint4 v) { *reinterpret_cast<uint4*>(to) = v; }

#ifndef BANDWATCH_HOST
__device__ __forceinline__ u32 shared_address(const void* p) {
    return static_cast<u32>(__cvta_generic_to_shared(p));
}
#endif

// ---- cp.async: 16 bytes from global to shared memory without passing a register -----------------
#if defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 800

__device__ __forceinline__ void copy_async(Byte* to_shared, const Byte* from) {
#ifdef BANDWATCH_HOST
    store16(to_shared, load16(from));
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to_shared)), "l"(from)
                 : "memory");
#endif
}

__device__ __forceinline__ void commit_async() {
#ifndef BANDWATCH_HOST
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most PENDING of this thread's committed groups are still on their way.
template <int PENDING> __device__ __forceinline__ void wait_async() {
#ifndef BANDWATCH_HOST
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

#endif

// ---- bulk copies: one thread starts one for the block; an mbarrier counts the bytes --------------
#if defined(BANDWATCH_HOST) || __CUDA_ARCH__ >= 900

// `barrier` serves one load.
__device__ __forceinline__ void barrier_init(u64* barrier) {
#ifdef BANDWATCH_HOST
    *barrier = 0;
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
    // The copy engine must see the initialised barrier.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// `bytes` is a multiple of 16, both ends on a boundary of 16.
__device__ __forceinline__ void bulk_load(Byte* to_shared, const Byte* from, u32 bytes, u64* barrier) {
#ifdef BANDWATCH_HOST
    for (u32 i = 0; i < bytes; i += 16) store16(to_shared + i, load16(from + i));
    *barrier = 1;
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to_shared)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
#endif
}

__device__ __forceinline__ void barrier_wait(u64* barrier) {
#ifdef BANDWATCH_HOST
    // The stand-in delivers at once, and a barrier of the block lies between it and this wait.
    if (!*barrier) host::fail("a wait for a bulk copy that was never started");
#else
    u32 done = 0;
    while (!done) {
        asm volatile(
            "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
            " selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(shared_address(barrier))
            : "memory");
    }
#endif
}

// Makes this thread's writes to shared memory visible to the copy engine.
__device__ __forceinline__ void fence_for_bulk() {
#ifndef BANDWATCH_HOST
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Starts the copy back and waits until the engine has read the shared memory, which may then go.
__device__ __forceinline__ void bulk_store(Byte* to, const Byte* from_shared, u32 bytes) {
#ifdef BANDWATCH_HOST
    for (u32 i = 0; i < bytes; i += 16) store16(to + i, load16(from_shared + i));
#else
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from_shared)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

#endif
