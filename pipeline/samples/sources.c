#include "pipeline/samples/sources.h"
#include "pipeline/samples/fetch.h"
#include "pipeline/samples/slot.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int weir_sources_open(struct weir_sources *sources, int workers, int cameras, int files)
{
    *sources = (struct weir_sources){.n_workers = workers, .n_cameras = cameras, .n_files = files};
    sources->workers = calloc((size_t)workers, sizeof *sources->workers);
    sources->files = calloc((size_t)files + 1, sizeof *sources->files);
    sources->max_ns = calloc((size_t)files + 1, sizeof *sources->max_ns);
    if (!sources->workers || !sources->files || !sources->max_ns)
        return -ENOMEM;
    for (int i = 0; i < workers; i++) {
        size_t cells = (size_t)cameras * WEIR_SOURCES + 1;
        sources->workers[i].cells = calloc(cells, sizeof *sources->workers[i].cells);
        if (!sources->workers[i].cells)
            return -ENOMEM;
    }
    return 0;
}

void weir_sources_close(struct weir_sources *sources)
{
    for (int i = 0; i < sources->n_workers && sources->workers; i++)
        free(sources->workers[i].cells);
    free(sources->workers);
    free(sources->files);
    free(sources->max_ns);
    *sources = (struct weir_sources){0};
}

/* ---- workers ---- */

static uint64_t get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void put(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static void record(struct weir_source_cell *cell, uint64_t ticks, uint64_t bytes)
{
    _Atomic uint32_t *bucket = &cell->hist[weir_hist_bucket(ticks)];
    uint64_t count = get(&cell->count);
    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1, memory_order_relaxed);
    put(&cell->total, get(&cell->total) + ticks);
    put(&cell->bytes, get(&cell->bytes) + bytes);
    if (count == 0 || ticks < get(&cell->min))
        put(&cell->min, ticks);
    if (ticks > get(&cell->max))
        put(&cell->max, ticks);
    atomic_store_explicit(&cell->count, count + 1,
                          memory_order_release); /* a reader that sees the new count also sees the new min and max */
}

static void record_file(struct weir_source_file *file, uint64_t ticks)
{
    atomic_fetch_add_explicit(&file->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&file->total, ticks, memory_order_relaxed);
    uint64_t max = get(&file->max);
    while (ticks > max &&
           !atomic_compare_exchange_weak_explicit(&file->max, &max, ticks, memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* Returns a free entry, or the entry of the shortest call kept, for a call that is among the longest. */
static int entry_for(const struct weir_slow_list *list, int n)
{
    int entry = 0;
    for (int i = 1; i < n && n == WEIR_SLOW_CALLS; i++)
        if (get(&list->calls[i].ticks) < get(&list->calls[entry].ticks))
            entry = i;
    return n < WEIR_SLOW_CALLS ? n : entry;
}

static uint64_t least_of(const struct weir_slow_list *list, int n)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < n; i++)
        least = get(&list->calls[i].ticks) < least ? get(&list->calls[i].ticks) : least;
    return n < WEIR_SLOW_CALLS ? 0 : least;
}

static void keep(struct weir_slow_list *list, uint32_t window, uint64_t ticks, const struct weir_image *image)
{
    bool anew = atomic_load_explicit(&list->window, memory_order_relaxed) != window;
    int n = anew ? 0 : atomic_load_explicit(&list->n, memory_order_relaxed);
    int entry = entry_for(list, n);
    uint32_t version = atomic_load_explicit(&list->version, memory_order_relaxed);
    atomic_store_explicit(&list->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* the odd version must be visible before any change */
    put(&list->calls[entry].ticks, ticks);
    atomic_store_explicit(&list->calls[entry].episode, image->episode, memory_order_relaxed);
    atomic_store_explicit(&list->calls[entry].camera, image->camera, memory_order_relaxed);
    atomic_store_explicit(&list->calls[entry].t, image->t, memory_order_relaxed);
    n = entry == n ? n + 1 : n;
    atomic_store_explicit(&list->n, n, memory_order_relaxed);
    atomic_store_explicit(&list->window, window, memory_order_relaxed);
    atomic_store_explicit(&list->version, version + 2, memory_order_release);
    list->least = least_of(list, n);
}

static void note(struct weir_sources *sources, int worker, enum weir_source_kind kind, const struct weir_image *image,
                 uint64_t ticks, uint64_t bytes)
{
    struct weir_source_cells *mine = &sources->workers[worker];
    struct weir_slow_list *slow = &mine->slow[kind];
    uint32_t window = atomic_load_explicit(&sources->window, memory_order_relaxed);
    record(&mine->cells[image->camera * WEIR_SOURCES + (int)kind], ticks, bytes);
    if (ticks > slow->least || atomic_load_explicit(&slow->window, memory_order_relaxed) != window)
        keep(slow, window, ticks, image);
}

struct weir_source_mark weir_sources_mark(const struct weir_fetcher *fetcher)
{
    struct weir_source_mark mark = {0};
    struct weir_read_counts reads;
    if (!weir_thread_self)
        return mark;
    weir_reader_counts(fetcher->reader, &reads);
    mark.read = weir_stage_ticks_here(WEIR_STAGE_READ_BYTES);
    mark.unpack = weir_stage_ticks_here(WEIR_STAGE_INFLATE) + weir_stage_ticks_here(WEIR_STAGE_VIDEO_DECODE);
    mark.decode = weir_stage_ticks_here(WEIR_STAGE_IMAGE_DECODE) + weir_stage_ticks_here(WEIR_STAGE_TO_TENSOR);
    mark.bytes = reads.bytes + get(&fetcher->fallback_bytes);
    return mark;
}

void weir_sources_unpacked(struct weir_sources *sources, int worker, const struct weir_fetcher *fetcher,
                           struct weir_source_mark *mark)
{
    struct weir_source_mark now = weir_sources_mark(fetcher);
    sources->workers[worker].unpack_ticks = now.unpack - mark->unpack;
    *mark = now;
}

uint64_t weir_sources_fetched(struct weir_sources *sources, int worker, const struct weir_fetcher *fetcher,
                              const struct weir_image *image, int frames, const struct weir_source_mark *mark)
{
    if (!weir_thread_self)
        return 0;
    struct weir_source_mark now = weir_sources_mark(fetcher);
    sources->workers[worker].unpack_ticks = (now.unpack - mark->unpack) / (uint64_t)frames;
    uint64_t ticks = now.read - mark->read;
    if (ticks == 0)
        return 0; /* these frames have no stored bytes */
    note(sources, worker, WEIR_SOURCE_READ, image, ticks, now.bytes - mark->bytes);
    record_file(&sources->files[weir_dataset_episode_file(fetcher->dataset, image->episode)], ticks);
    return ticks;
}

void weir_sources_decoded(struct weir_sources *sources, int worker, const struct weir_image *image, size_t bytes,
                          const struct weir_source_mark *mark)
{
    if (!weir_thread_self)
        return;
    uint64_t ticks = weir_stage_ticks_here(WEIR_STAGE_IMAGE_DECODE) + weir_stage_ticks_here(WEIR_STAGE_TO_TENSOR);
    ticks += sources->workers[worker].unpack_ticks - mark->decode;
    note(sources, worker, WEIR_SOURCE_DECODE, image, ticks, bytes);
}

/* ---- reports ---- */

static void add_cell(struct weir_source_camera *to, const struct weir_source_cell *cell, enum weir_source_kind kind)
{
    struct weir_stage_stats *stats = &to->stats[kind];
    uint64_t count = atomic_load_explicit(&cell->count, memory_order_acquire);
    if (count == 0)
        return;
    uint64_t min_ns = weir_clock_to_ns(get(&cell->min)), max_ns = weir_clock_to_ns(get(&cell->max));
    stats->min_ns = stats->count == 0 || min_ns < stats->min_ns ? min_ns : stats->min_ns;
    stats->max_ns = max_ns > stats->max_ns ? max_ns : stats->max_ns;
    stats->count += count;
    stats->total_ns += weir_clock_to_ns(get(&cell->total));
    stats->hist_ns = weir_clock_ns_per_tick();
    for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
        stats->hist[i] += atomic_load_explicit(&cell->hist[i], memory_order_relaxed);
    to->bytes[kind] += get(&cell->bytes);
}

/* Inserts a call into the kept calls, which are sorted, longest first. */
static void rank(struct weir_source_call *calls, int *n, const struct weir_source_call *call)
{
    int at = *n;
    while (at > 0 && calls[at - 1].ns < call->ns)
        at--;
    if (at == WEIR_SLOW_CALLS)
        return;
    *n = *n < WEIR_SLOW_CALLS ? *n + 1 : *n;
    memmove(&calls[at + 1], &calls[at], sizeof *calls * (size_t)(*n - at - 1));
    calls[at] = *call;
}

/* Tries once to make a consistent copy. Returns false if the list changed meanwhile. */
static bool copy_list(const struct weir_slow_list *list, uint32_t *window, int *n, struct weir_source_call *calls,
                      enum weir_source_kind kind)
{
    uint32_t before = atomic_load_explicit(&list->version, memory_order_acquire);
    *window = atomic_load_explicit(&list->window, memory_order_relaxed);
    *n = atomic_load_explicit(&list->n, memory_order_relaxed);
    for (int i = 0; i < *n; i++)
        calls[i] = (struct weir_source_call){
            .kind = kind,
            .episode = atomic_load_explicit(&list->calls[i].episode, memory_order_relaxed),
            .camera = atomic_load_explicit(&list->calls[i].camera, memory_order_relaxed),
            .t = atomic_load_explicit(&list->calls[i].t, memory_order_relaxed),
            .ns = weir_clock_to_ns(get(&list->calls[i].ticks)),
        };
    atomic_thread_fence(memory_order_acquire); /* completes the copy before reading the version again */
    return (before & 1) == 0 && atomic_load_explicit(&list->version, memory_order_relaxed) == before;
}

/* Collects all workers' longest calls since the last take, and merges them into those of the run. */
static void take_calls(struct weir_sources *sources, enum weir_source_kind kind, struct weir_source_figures *figures)
{
    struct weir_source_call calls[WEIR_SLOW_CALLS];
    uint32_t window;
    int n;
    for (int i = 0; i < sources->n_workers; i++) {
        const struct weir_slow_list *list = &sources->workers[i].slow[kind];
        bool whole = false;
        for (int tries = 0; tries < 10000 && !whole; tries++)
            whole = copy_list(list, &window, &n, calls, kind);
        for (int k = 0; k < n && whole && window == atomic_load(&sources->window); k++)
            rank(figures->window_calls[kind], &figures->n_window_calls[kind], &calls[k]);
    }
    for (int k = 0; k < figures->n_window_calls[kind]; k++)
        rank(sources->calls[kind], &sources->n_calls[kind], &figures->window_calls[kind][k]);
    memcpy(figures->calls[kind], sources->calls[kind], sizeof figures->calls[kind]);
    figures->n_calls[kind] = sources->n_calls[kind];
}

static void take_files(struct weir_sources *sources, struct weir_source_figures *figures)
{
    for (int i = 0; i < sources->n_files; i++) {
        struct weir_source_file *from = &sources->files[i];
        struct weir_source_file_figures *to = &figures->files[i];
        to->count = get(&from->count);
        to->total_ns = weir_clock_to_ns(get(&from->total));
        to->window_max_ns = weir_clock_to_ns(atomic_exchange_explicit(&from->max, 0, memory_order_relaxed));
        if (to->window_max_ns > sources->max_ns[i])
            sources->max_ns[i] = to->window_max_ns;
        to->max_ns = sources->max_ns[i];
    }
}

int weir_sources_take(struct weir_sources *sources, struct weir_source_figures **out)
{
    struct weir_source_figures *figures = *out = calloc(1, sizeof *figures);
    if (!figures)
        return -ENOMEM;
    figures->n_cameras = sources->n_cameras;
    figures->n_files = sources->n_files;
    figures->cameras = calloc((size_t)sources->n_cameras + 1, sizeof *figures->cameras);
    figures->files = calloc((size_t)sources->n_files + 1, sizeof *figures->files);
    if (!figures->cameras || !figures->files) {
        weir_source_figures_free(out);
        return -ENOMEM;
    }
    for (int i = 0; i < sources->n_workers; i++)
        for (int cell = 0; cell < sources->n_cameras * WEIR_SOURCES; cell++)
            add_cell(&figures->cameras[cell / WEIR_SOURCES], &sources->workers[i].cells[cell],
                     (enum weir_source_kind)(cell % WEIR_SOURCES));
    take_files(sources, figures);
    for (int kind = 0; kind < WEIR_SOURCES; kind++)
        take_calls(sources, (enum weir_source_kind)kind, figures);
    atomic_fetch_add(&sources->window, 1);
    return 0;
}

void weir_sources_begin_window(struct weir_source_figures *since)
{
    if (!since)
        return;
    memset(since->n_window_calls, 0, sizeof since->n_window_calls);
    for (int i = 0; i < since->n_files; i++)
        since->files[i].window_max_ns = 0;
}

void weir_sources_widen(struct weir_source_figures *since, const struct weir_source_figures *taken)
{
    if (!since || !taken)
        return;
    for (int kind = 0; kind < WEIR_SOURCES; kind++)
        for (int i = 0; i < taken->n_window_calls[kind]; i++)
            rank(since->window_calls[kind], &since->n_window_calls[kind], &taken->window_calls[kind][i]);
    for (int i = 0; i < since->n_files; i++)
        if (taken->files[i].window_max_ns > since->files[i].window_max_ns)
            since->files[i].window_max_ns = taken->files[i].window_max_ns;
}

void weir_source_figures_free(struct weir_source_figures **figures)
{
    if (!*figures)
        return;
    free((*figures)->cameras);
    free((*figures)->files);
    free(*figures);
    *figures = NULL;
}
