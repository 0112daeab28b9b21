/* Keeps running totals of memory per device and records memory events. */
#include "prof/record/track_priv.h"

static _Atomic int64_t allocated[WEIR_MEMORY_DEVICES + 1], reserved[WEIR_MEMORY_DEVICES + 1];

static int place(int device)
{
    return device >= WEIR_MEMORY_CPU && device < WEIR_MEMORY_DEVICES ? device + 1 : 0;
}

static void record(const void *address, int64_t bytes, int device, int64_t now_allocated)
{
    struct weir_writing writing;
    struct weir_ring *track = weir_track_mine();
    if (!track || !weir_track_begin(track, 3, &writing))
        return;
    uint32_t at = (uint32_t)place(device);
    weir_track_put(&writing, weir_clock_ticks(), weir_record_word(at, 0, WEIR_RECORD_MEMORY, 0));
    weir_track_put(&writing, (uintptr_t)address, (uint64_t)bytes);
    weir_track_put(&writing, (uint64_t)now_allocated,
                   (uint64_t)atomic_load_explicit(&reserved[at], memory_order_relaxed));
    weir_track_end(&writing);
}

static void change(const void *address, int64_t bytes, int device)
{
    int64_t now = atomic_fetch_add_explicit(&allocated[place(device)], bytes, memory_order_relaxed) + bytes;
    if (weir_recording() & WEIR_RECORDING_MEMORY)
        record(address, bytes, device, now);
}

void weir_memory_allocated(const void *address, uint64_t bytes, int device)
{
    change(address, (int64_t)bytes, device);
}

void weir_memory_freed(const void *address, uint64_t bytes, int device)
{
    change(address, -(int64_t)bytes, device);
}

void weir_memory_reserved(int64_t bytes, int device)
{
    atomic_fetch_add_explicit(&reserved[place(device)], bytes, memory_order_relaxed);
}

void weir_memory_totals(int device, int64_t *now_allocated, int64_t *now_reserved)
{
    *now_allocated = atomic_load_explicit(&allocated[place(device)], memory_order_relaxed);
    *now_reserved = atomic_load_explicit(&reserved[place(device)], memory_order_relaxed);
}
