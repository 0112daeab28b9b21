/* Frames that are read, or located, by the format's own reader. */
#include "base/threads.h"
#include "datasets/format_ops.h"
#include "weir/recorder.h"
#include "weir/stages.h"

static void lock_timed(struct weir_dataset *dataset)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_LIBRARY);
    pthread_mutex_lock(&dataset->helper_lock);
}

/* Called with the lock held, so there is only one writer. */
static void count_helper(struct weir_dataset *dataset, uint64_t asked_ns, uint64_t begun_ns)
{
    weir_counter_add(&dataset->helper_calls, 1);
    weir_counter_add(&dataset->helper_wait_ns, begun_ns - asked_ns);
    weir_counter_add(&dataset->helper_busy_ns, weir_clock_monotonic_ns() - begun_ns);
}

void weir_dataset_helper(const struct weir_dataset *dataset, struct weir_helper_counts *counts)
{
    counts->calls = atomic_load_explicit(&dataset->helper_calls, memory_order_relaxed);
    counts->busy_ns = atomic_load_explicit(&dataset->helper_busy_ns, memory_order_relaxed);
    counts->wait_ns = atomic_load_explicit(&dataset->helper_wait_ns, memory_order_relaxed);
}

static const struct weir_file_index *file_of(const struct weir_dataset *dataset, int episode)
{
    return &dataset->files[dataset->episodes[episode].file];
}

bool weir_dataset_can_find_frames(const struct weir_dataset *dataset, int episode, int camera)
{
    struct weir_frame_map *map = &dataset->episodes[episode].maps[camera];
    return map->storage == WEIR_STORED_LIBRARY && !atomic_load_explicit(&map->located, memory_order_acquire) &&
           weir_file_format(file_of(dataset, episode))->find_frames;
}

int weir_dataset_find_frames(struct weir_dataset *dataset, int episode, int camera, struct weir_err *err)
{
    if (!weir_dataset_can_find_frames(dataset, episode, camera))
        return 0;
    WEIR_ZONE(WEIR_STAGE_READ_BYTES);
    const struct weir_file_index *file = file_of(dataset, episode);
    int rc = weir_file_format(file)->find_frames(dataset->origin, file, &dataset->episodes[episode].maps[camera], err);
    return rc < 0 ? rc : 1;
}

int weir_fetch(struct weir_dataset *dataset, int episode, int camera, int t, void *buffer, size_t capacity,
               size_t *length, struct weir_err *err)
{
    struct weir_frame_map *map = &dataset->episodes[episode].maps[camera];
    const struct weir_file_index *file = file_of(dataset, episode);
    const struct weir_format_ops *format = weir_file_format(file);
    uint64_t asked_ns = weir_clock_monotonic_ns();
    lock_timed(dataset);
    uint64_t begun_ns = weir_clock_monotonic_ns();
    if (dataset->library_format != format)
        weir_opening_end(&dataset->library);
    dataset->library_format = format;
    int rc = format->read_row(&dataset->library, file, map, (uint64_t)t, buffer, capacity, length, err);
    count_helper(dataset, asked_ns, begun_ns);
    pthread_mutex_unlock(&dataset->helper_lock);
    return rc;
}
