/* Frames are never evicted. In shuffled epochs every frame is equally likely to be requested next, so replacing one
 * frame with another gains nothing. If the dataset is larger than the cache, a least-recently-used policy evicts each
 * frame before its next use and has almost no hits. If instead the first frames are kept, the hit rate from the second
 * epoch on equals the fraction of frames that fit, and no policy can improve on that without knowing the order. A cache
 * without eviction also needs no locks and no reference counts, and its memory does not fragment if cameras differ in
 * size. */
#include "pipeline/samples/frame_cache.h"
#include "base/resources.h"
#include "base/text.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* States of a frame that is not in the cache. They differ from all offsets of frames, which are multiples of 64 and
 * follow the table. */
enum { NEVER_ASKED = 0, NOT_KEPT = 1, BEING_KEPT = 2, ALIGNMENT = 64 };

static uint64_t aligned(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* Computes the sizes of the tables and of all frames. Returns -EOVERFLOW if they exceed the address space. */
static int measure(struct weir_frame_cache *cache, const int *steps, int episodes)
{
    uint64_t all_steps = 0, step_bytes = 0;
    for (int i = 0; i < episodes; i++)
        all_steps += (uint64_t)steps[i];
    for (int c = 0; c < cache->cameras; c++)
        step_bytes += aligned(cache->image_bytes[c], ALIGNMENT);
    cache->all_frames = all_steps * (uint64_t)cache->cameras;
    cache->table_bytes = aligned(8 * (cache->all_frames + (uint64_t)episodes), ALIGNMENT);
    uint64_t pixels;
    return __builtin_mul_overflow(all_steps, step_bytes, &pixels) ||
                   __builtin_add_overflow(pixels, cache->table_bytes, &cache->all_bytes) || cache->all_bytes > INT64_MAX
               ? -EOVERFLOW
               : 0;
}

/* Returns the number of bytes to map: whole pages within the budget, or 0 if not even one frame fits. */
static uint64_t mapping_bytes(const struct weir_frame_cache *cache)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), smallest = UINT64_MAX;
    uint64_t budget = cache->budget_bytes / page * page, all = aligned(cache->all_bytes, page);
    for (int c = 0; c < cache->cameras; c++)
        smallest = cache->image_bytes[c] < smallest ? cache->image_bytes[c] : smallest;
    uint64_t bytes = all < budget ? all : budget;
    return bytes > cache->table_bytes && bytes - cache->table_bytes >= smallest ? bytes : 0;
}

int weir_frame_cache_open(struct weir_frame_cache *cache, uint64_t budget_bytes, const int *steps, int episodes,
                          const size_t *image_bytes, int cameras, int processes, struct weir_err *err)
{
    memset(cache, 0, sizeof *cache);
    cache->budget_bytes = budget_bytes;
    cache->image_bytes = image_bytes;
    cache->cameras = cameras;
    if (budget_bytes == 0)
        return 0;
    if (measure(cache, steps, episodes) < 0)
        return weir_err_set(err, -EOVERFLOW,
                            "the dataset's decoded frames exceed the address space; omit --decode-cache");
    uint64_t bytes = mapping_bytes(cache), available = weir_memory_available_each(processes);
    if (bytes == 0)
        return 0;
    void *memory = available && bytes > available
                       ? MAP_FAILED
                       : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return weir_err_set(err, -ENOMEM,
                            "a decode cache of %s does not fit: only %s are free%s; use a smaller --decode-cache",
                            weir_size((double)bytes).text, weir_size((double)available).text,
                            processes > 1 ? " for each local rank" : "");
    /* Without MADV_HUGEPAGE: where memory is fragmented, the kernel compacts it for each huge page, and filling the
     * cache takes up to four times as long. */
    cache->memory = memory;
    cache->memory_bytes = bytes;
    cache->frames = memory;
    cache->first = (uint64_t *)memory + cache->all_frames;
    for (int i = 1; i < episodes; i++)
        cache->first[i] = cache->first[i - 1] + (uint64_t)steps[i - 1];
    cache->used_bytes = cache->table_bytes;
    weir_memory_reserved((int64_t)bytes, WEIR_MEMORY_CPU);
    return 0;
}

void weir_frame_cache_close(struct weir_frame_cache *cache)
{
    if (cache->memory) {
        weir_memory_unmap(cache->memory, cache->memory_bytes);
        weir_memory_reserved(-(int64_t)cache->memory_bytes, WEIR_MEMORY_CPU);
    }
    memset(cache, 0, sizeof *cache);
}

static _Atomic uint64_t *entry_of(const struct weir_frame_cache *cache, int episode, int camera, int t)
{
    return &cache->frames[(cache->first[episode] + (uint64_t)t) * (uint64_t)cache->cameras + (uint64_t)camera];
}

bool weir_frame_cache_has(const struct weir_frame_cache *cache, int episode, int camera, int t)
{
    return cache->memory &&
           atomic_load_explicit(entry_of(cache, episode, camera, t), memory_order_relaxed) >= ALIGNMENT;
}

bool weir_frame_cache_take(struct weir_frame_cache *cache, int episode, int camera, int t, void *to)
{
    if (!cache->memory)
        return false;
    _Atomic uint64_t *entry = entry_of(cache, episode, camera, t);
    /* The acquire load makes the pixels visible that were written before the offset. Pixels never change afterwards. */
    uint64_t offset = atomic_load_explicit(entry, memory_order_acquire);
    if (offset >= ALIGNMENT) {
        WEIR_ZONE(WEIR_STAGE_CACHE_COPY);
        memcpy(to, cache->memory + offset, cache->image_bytes[camera]);
        return true;
    }
    if (offset == NEVER_ASKED &&
        atomic_compare_exchange_strong_explicit(entry, &offset, NOT_KEPT, memory_order_relaxed, memory_order_relaxed))
        atomic_fetch_add_explicit(&cache->seen, 1, memory_order_relaxed);
    return false;
}

/* Reserves bytes and returns their offset, or 0 if they do not fit. A smaller frame may still fit. */
static uint64_t reserve(struct weir_frame_cache *cache, uint64_t bytes)
{
    uint64_t offset = atomic_load_explicit(&cache->used_bytes, memory_order_relaxed);
    do {
        if (bytes > cache->memory_bytes - offset)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&cache->used_bytes, &offset, offset + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return offset;
}

void weir_frame_cache_keep(struct weir_frame_cache *cache, int episode, int camera, int t, const void *pixels)
{
    uint64_t bytes = cache->memory ? aligned(cache->image_bytes[camera], ALIGNMENT) : 0, state = NOT_KEPT;
    if (!cache->memory || bytes > cache->memory_bytes - atomic_load_explicit(&cache->used_bytes, memory_order_relaxed))
        return;
    _Atomic uint64_t *entry = entry_of(cache, episode, camera, t);
    if (!atomic_compare_exchange_strong_explicit(entry, &state, BEING_KEPT, memory_order_relaxed, memory_order_relaxed))
        return; /* another worker has kept the frame first, for another batch */
    uint64_t offset = reserve(cache, bytes);
    if (offset == 0) {
        atomic_store_explicit(entry, NOT_KEPT, memory_order_relaxed);
        return;
    }
    WEIR_ZONE(WEIR_STAGE_CACHE_KEEP);
    memcpy(cache->memory + offset, pixels, cache->image_bytes[camera]);
    atomic_store_explicit(entry, offset, memory_order_release); /* makes the pixels visible to other threads */
    atomic_fetch_add_explicit(&cache->kept, 1, memory_order_relaxed);
}
