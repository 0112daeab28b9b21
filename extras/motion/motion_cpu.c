/* Motion on the CPU: memory, threads and the function table. The operators are in motion_cpu_operators.c, the pass is
 * in motion_cpu_pass.c. Calls are not queued. */
#include "base/resources.h"
#include "extras/motion/motion_cpu_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 64, HEAP_BYTES = 31 << 20 /* glibc raises its trim threshold only for blocks of up to 32 MiB */ };

static bool has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* Keeps glibc from returning the top of the heap to the kernel, because page faults would then take longer than the
 * operators. glibc returns free memory at the top of the heap if it exceeds twice the size of the largest block freed
 * so far. Freeing a large block here raises that limit, as happens in any training program. */
static void keep_heap(void)
{
    void *block = malloc(HEAP_BYTES);
    __asm__ volatile("" : : "r"(block) : "memory"); /* keeps the compiler from removing malloc and free */
    free(block);
}

static int cpu_open(void **out, const struct weir_motion_device *device, struct weir_err *err)
{
    *out = NULL;
    struct weir_motion_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = weir_team_open(&cpu->team, device->threads);
    if (rc < 0) {
        free(cpu);
        return weir_err_set(err, rc, "cannot start %d threads for motion on the CPU: %s; use fewer threads",
                            device->threads, strerror(-rc));
    }
    cpu->avx2 = has_avx2();
    keep_heap();
    snprintf(cpu->description, sizeof cpu->description, "%d thread%s%s", device->threads,
             device->threads == 1 ? "" : "s", cpu->avx2 ? ", AVX2" : "");
    *out = cpu;
    return 0;
}

static void cpu_close(void *self)
{
    struct weir_motion_cpu *cpu = self;
    if (!cpu)
        return;
    weir_team_close(&cpu->team);
    free(cpu);
}

static const char *cpu_describe(const void *self)
{
    return ((const struct weir_motion_cpu *)self)->description;
}

static int cpu_finish(void *self, struct weir_err *err)
{
    (void)self;
    (void)err;
    return 0;
}

static uint64_t cpu_available_bytes(void *self)
{
    (void)self;
    return weir_memory_available_bytes();
}

static void *cpu_allocate(void *self, size_t bytes)
{
    (void)self;
    if (bytes > SIZE_MAX - LINE_BYTES)
        return NULL;
    bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return aligned_alloc(LINE_BYTES, bytes ? bytes : LINE_BYTES);
}

static void cpu_release(void *self, void *memory, size_t bytes)
{
    (void)self;
    (void)bytes;
    free(memory);
}

static uint64_t cpu_reserved(void *self)
{
    (void)self;
    return 0;
}

static void cpu_copy(void *self, void *to, const void *from, size_t bytes)
{
    (void)self;
    memcpy(to, from, bytes);
}

static void cpu_advance(void *self, size_t n, float *times, float dt_s)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        times[i] += dt_s;
}

const struct weir_motion_ops weir_motion_cpu = {
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .finish = cpu_finish,
    .available_bytes = cpu_available_bytes,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .reserved = cpu_reserved,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .operate = weir_motion_cpu_operate,
    .pass = weir_motion_cpu_pass,
    .advance = cpu_advance,
};
