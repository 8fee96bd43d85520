"""The CUDA kernels as source; NVRTC compiles it in the worker."""

from __future__ import annotations

NAMES = ("gate", "copy16", "copy16_both", "chase", "ping_pong")

SOURCE = r"""
__device__ unsigned long long now_ns() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Holds its stream until the host sets *flag, at most timeout_ns. *said: 1 opened by the flag, 2 timed out.
extern "C" __global__ void gate(volatile unsigned* flag, volatile unsigned* said, unsigned long long timeout_ns) {
    unsigned long long end = now_ns() + timeout_ns;
    while (*flag == 0) {
        if (now_ns() > end) { *said = 2; return; }
    }
    *said = 1;
}

// Copies 16-byte words first, first + stride, … below n. Every thread keeps DEPTH loads in flight: the way over PCIe is
// long.
#define DEPTH 12
__device__ __forceinline__ void copy_words(uint4* target, const uint4* source, unsigned long long first,
                                           unsigned long long stride, unsigned long long n) {
    unsigned long long i = first;
    for (; i + (DEPTH - 1) * stride < n; i += DEPTH * stride) {
        uint4 word[DEPTH];
        #pragma unroll
        for (int k = 0; k < DEPTH; ++k) word[k] = __ldcg(source + i + k * stride);
        #pragma unroll
        for (int k = 0; k < DEPTH; ++k) __stcg(target + i + k * stride, word[k]);
    }
    for (; i < n; i += stride) __stcg(target + i, __ldcg(source + i));
}

// Copies n 16-byte words.
extern "C" __global__ void copy16(uint4* target, const uint4* source, unsigned long long n) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    copy_words(target, source, (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x, stride, n);
}

// Copies n 16-byte words each way at once: the even warps of every block one way, the odd ones the other. One kernel,
// since two share the multiprocessors unevenly or run one after the other; one word a thread, since the two directions
// then stay in step to the end (on an H200 42.0 GB/s each way, 41.3 to 41.7 with loops). blockDim.x: a multiple of 64.
extern "C" __global__ void copy16_both(uint4* target, const uint4* source, uint4* back_target,
                                       const uint4* back_source, unsigned long long n) {
    const unsigned warp = threadIdx.x / 32;
    const unsigned long long i =
        (unsigned long long)blockIdx.x * (blockDim.x / 2) + warp / 2 * 32 + threadIdx.x % 32;
    if (i >= n) return;
    if (warp % 2) __stcg(back_target + i, __ldcg(back_source + i));
    else __stcg(target + i, __ldcg(source + i));
}

// Follows `loads` dependent pointers from one thread of block `chosen`; the other blocks only take their SMs.
extern "C" __global__ void chase(unsigned long long start, unsigned loads, unsigned chosen, unsigned long long* last) {
    if (blockIdx.x != chosen) return;
    void** p = (void**)start;
    for (unsigned i = 0; i < loads; ++i) p = (void**)*p;
    *last = (unsigned long long)p;
}

// Two such kernels answer each other through two flags: each waits for its turn in *mine and then sets *other.
// first: 1 for the side that serves. *said: 1 all rounds done, 2 timed out.
extern "C" __global__ void ping_pong(volatile unsigned* mine, volatile unsigned* other, unsigned rounds,
                                     unsigned first, unsigned long long timeout_ns, volatile unsigned* said) {
    unsigned long long end = now_ns() + timeout_ns;
    for (unsigned i = 1; i <= rounds; ++i) {
        if (first) *other = i;
        unsigned spins = 0;
        while (*mine != i) {
            if (((++spins) & 1023u) == 0 && now_ns() > end) { *said = 2; return; }
        }
        if (!first) *other = i;
    }
    __threadfence_system();
    *said = 1;
}
"""
