#include "base/grow.h"
#include "base/hash.h"
#include "weir/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const cat_names[WEIR_CAT_COUNT] = {
    [WEIR_CAT_OTHER] = "",
    [WEIR_CAT_CPU_OP] = "cpu_op",
    [WEIR_CAT_USER_ANNOTATION] = "user_annotation",
    [WEIR_CAT_LOADER_STAGE] = "loader_stage",
    [WEIR_CAT_LOADER_ITEM] = "loader_item",
    [WEIR_CAT_PYTHON_FUNCTION] = "python_function",
    [WEIR_CAT_CUDA_RUNTIME] = "cuda_runtime",
    [WEIR_CAT_CUDA_DRIVER] = "cuda_driver",
    [WEIR_CAT_KERNEL] = "kernel",
    [WEIR_CAT_GPU_MEMCPY] = "gpu_memcpy",
    [WEIR_CAT_GPU_MEMSET] = "gpu_memset",
    [WEIR_CAT_GPU_USER_ANNOTATION] = "gpu_user_annotation",
    [WEIR_CAT_CUDA_SYNC] = "cuda_sync",
    [WEIR_CAT_CUDA_EVENT] = "cuda_event",
    [WEIR_CAT_OVERHEAD] = "overhead",
    [WEIR_CAT_CPU_INSTANT_EVENT] = "cpu_instant_event",
    [WEIR_CAT_GPU_STAGE] = "gpu_stage",
};

const char *weir_cat_name(enum weir_cat cat)
{
    return (unsigned)cat < WEIR_CAT_COUNT ? cat_names[cat] : "";
}

enum weir_cat weir_cat_find(const char *text, size_t length)
{
    for (int i = 1; i < WEIR_CAT_COUNT; i++)
        if (strlen(cat_names[i]) == length && memcmp(cat_names[i], text, length) == 0)
            return (enum weir_cat)i;
    return WEIR_CAT_OTHER;
}

bool weir_cat_is_device(enum weir_cat cat)
{
    return cat == WEIR_CAT_KERNEL || cat == WEIR_CAT_GPU_MEMCPY || cat == WEIR_CAT_GPU_MEMSET ||
           cat == WEIR_CAT_GPU_USER_ANNOTATION || cat == WEIR_CAT_CUDA_SYNC || cat == WEIR_CAT_CUDA_EVENT ||
           cat == WEIR_CAT_GPU_STAGE;
}

/* ---- strings: one block of characters, their offsets, and a hash table of ids ---- */

struct weir_texts {
    char *characters;
    size_t used, room;
    size_t *offsets; /* offset of each id's string in characters */
    uint32_t count;
    uint32_t *slots; /* hash table of ids by open addressing; 0 = free */
    uint32_t n_slots;
    bool failed;
};

enum { TEXTS_MAX = 1 << 28, SLOTS_FIRST = 256 };

static bool texts_room(struct weir_texts *t, size_t length)
{
    if (t->count >= TEXTS_MAX)
        return false;
    if (t->used + length + 1 > t->room) {
        size_t room = 2 * t->room + length + 1;
        char *moved = realloc(t->characters, room);
        if (!moved)
            return false;
        t->characters = moved;
        t->room = room;
    }
    return weir_grow(&t->offsets, t->count, sizeof *t->offsets);
}

static uint32_t *slot_of(const struct weir_texts *t, const char *text, size_t length)
{
    uint32_t at = (uint32_t)weir_hash64(text, length) & (t->n_slots - 1);
    for (;; at = (at + 1) & (t->n_slots - 1)) {
        uint32_t id = t->slots[at];
        if (id == 0)
            return &t->slots[at];
        const char *there = t->characters + t->offsets[id];
        size_t end = id + 1 < t->count ? t->offsets[id + 1] : t->used;
        if (end - t->offsets[id] == length + 1 && memcmp(there, text, length) == 0)
            return &t->slots[at];
    }
}

static bool slots_grow(struct weir_texts *t)
{
    if (t->n_slots && t->count < t->n_slots / 2)
        return true;
    uint32_t n = t->n_slots ? 2 * t->n_slots : SLOTS_FIRST;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->n_slots = n;
    for (uint32_t id = 1; id < t->count; id++) {
        size_t end = id + 1 < t->count ? t->offsets[id + 1] : t->used;
        *slot_of(t, t->characters + t->offsets[id], end - t->offsets[id] - 1) = id;
    }
    return true;
}

static void texts_append(struct weir_texts *t, const char *text, size_t length)
{
    t->offsets[t->count++] = t->used;
    memcpy(t->characters + t->used, text, length);
    t->characters[t->used + length] = '\0';
    t->used += length + 1;
}

weir_text_id weir_trace_intern(struct weir_trace *trace, const char *text, size_t length)
{
    struct weir_texts *t = trace->texts;
    if (length == 0)
        return 0;
    if (!slots_grow(t)) {
        t->failed = true;
        return 0;
    }
    uint32_t *slot = slot_of(t, text, length);
    if (*slot)
        return *slot;
    if (!texts_room(t, length)) {
        t->failed = true;
        return 0;
    }
    texts_append(t, text, length);
    return *slot = t->count - 1;
}

const char *weir_trace_text(const struct weir_trace *trace, weir_text_id id)
{
    return id < trace->texts->count ? trace->texts->characters + trace->texts->offsets[id] : "";
}

uint32_t weir_trace_text_count(const struct weir_trace *trace)
{
    return trace->texts->count;
}

bool weir_trace_failed(const struct weir_trace *trace)
{
    return trace->texts->failed;
}

/* ---- events and tracks ---- */

int weir_trace_new(struct weir_trace **out)
{
    struct weir_trace *trace = calloc(1, sizeof *trace);
    struct weir_texts *texts = calloc(1, sizeof *texts);
    *out = NULL;
    if (!trace || !texts || !texts_room(texts, 0)) {
        free(trace);
        free(texts);
        return -ENOMEM;
    }
    texts_append(texts, "", 0);
    trace->texts = texts;
    *out = trace;
    return 0;
}

void weir_trace_free(struct weir_trace **trace)
{
    struct weir_trace *t = *trace;
    if (!t)
        return;
    free(t->texts->characters);
    free(t->texts->offsets);
    free(t->texts->slots);
    free(t->texts);
    free(t->events);
    free(t->tracks);
    free(t->track_slots);
    free(t->devices);
    free(t);
    *trace = NULL;
}

static uint32_t *track_slot(struct weir_trace *trace, const struct weir_trace_row *row)
{
    uint64_t hash = (uint64_t)row->pid * UINT64_C(0x9e3779b97f4a7c15) ^
                    (uint64_t)row->tid * UINT64_C(0xc2b2ae3d27d4eb4f) ^ row->pid_label * UINT64_C(0x165667b19e3779f9) ^
                    (uint64_t)row->device << 7;
    for (uint64_t at = hash ^ hash >> 32;; at++) {
        uint32_t *slot = &trace->track_slots[at & (trace->n_track_slots - 1)];
        if (*slot == 0)
            return slot;
        const struct weir_trace_row *t = &trace->tracks[*slot - 1];
        if (t->pid == row->pid && t->tid == row->tid && t->device == row->device && t->pid_label == row->pid_label)
            return slot;
    }
}

static int grow_tracks(struct weir_trace *trace)
{
    if (trace->n_tracks < trace->tracks_room)
        return 0;
    uint32_t room = trace->tracks_room ? 2 * trace->tracks_room : 32;
    struct weir_trace_row *moved = realloc(trace->tracks, room * sizeof *moved);
    if (!moved)
        return -ENOMEM;
    trace->tracks = moved;
    uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(trace->track_slots);
    trace->track_slots = slots;
    trace->n_track_slots = 2 * room;
    trace->tracks_room = room;
    for (uint32_t i = 0; i < trace->n_tracks; i++)
        *track_slot(trace, &trace->tracks[i]) = i + 1;
    return 0;
}

int64_t weir_trace_track(struct weir_trace *trace, int64_t pid, int64_t tid, bool device, weir_text_id label)
{
    const struct weir_trace_row row = {.pid = pid, .tid = tid, .device = device, .pid_label = label};
    if (grow_tracks(trace) < 0)
        return -ENOMEM;
    uint32_t *slot = track_slot(trace, &row);
    if (*slot == 0) {
        trace->tracks[trace->n_tracks] = row;
        *slot = ++trace->n_tracks;
    }
    return *slot - 1;
}

int weir_trace_add(struct weir_trace *trace, const struct weir_event *event)
{
    if (trace->n_events == trace->events_room) {
        size_t room = trace->events_room ? 2 * trace->events_room : 1024;
        struct weir_event *moved = realloc(trace->events, room * sizeof *moved);
        if (!moved)
            return -ENOMEM;
        trace->events = moved;
        trace->events_room = room;
    }
    trace->events[trace->n_events++] = *event;
    return 0;
}

static bool comes_first(const struct weir_event *a, const struct weir_event *b)
{
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns;
    return a->duration_ns >= b->duration_ns; /* if equal, keep the original order */
}

/* Merges pairs of adjacent sorted runs of n events from one array into another. Stable, unlike qsort. */
static void merge_runs(struct weir_event *to, const struct weir_event *from, size_t total, size_t n)
{
    for (size_t at = 0; at < total; at += 2 * n) {
        size_t a = at, a_end = at + n < total ? at + n : total;
        size_t b = a_end, b_end = at + 2 * n < total ? at + 2 * n : total;
        for (size_t i = at; i < b_end; i++) {
            bool left = a < a_end && (b == b_end || comes_first(&from[a], &from[b]));
            to[i] = left ? from[a++] : from[b++];
        }
    }
}

static bool is_sorted(const struct weir_trace *trace)
{
    for (size_t i = 1; i < trace->n_events; i++)
        if (!comes_first(&trace->events[i - 1], &trace->events[i]))
            return false;
    return true;
}

int weir_trace_sort(struct weir_trace *trace)
{
    if (is_sorted(trace))
        return 0;
    struct weir_event *other = malloc(trace->n_events * sizeof *other);
    if (!other)
        return -ENOMEM;
    for (size_t n = 1; n < trace->n_events; n *= 2) {
        merge_runs(other, trace->events, trace->n_events, n);
        struct weir_event *swap = trace->events;
        trace->events = other;
        other = swap;
    }
    free(other);
    trace->events_room = trace->n_events;
    return 0;
}

enum { NEST_DEPTH = 64 }; /* same as the maximum depth of recorded ranges on a thread */

/* The open ranges of a row, outermost first. */
struct nest {
    int n;
    struct {
        struct weir_event *event;
        int64_t end_ns, was_ns; /* end after clipping, and the original end */
    } open[NEST_DEPTH];
};

/* Closes the ranges that end when the next one of the row starts, or earlier. On a thread, they then end before it. */
static void close_ranges(struct nest *row, int64_t next_ns, bool device)
{
    int n = row->n;
    while (row->n > 0 && row->open[row->n - 1].end_ns <= next_ns)
        row->n--;
    for (int i = row->n; i < n && !device; i++) { /* outermost first */
        int64_t end_ns = row->open[i].end_ns;
        if (end_ns == next_ns && row->open[i].event->duration_ns > 0) {
            row->open[i].event->duration_ns--;
            end_ns--;
        }
        next_ns = end_ns; /* the range inside it ends earlier */
    }
}

static void nest_range(struct nest *row, struct weir_event *event, bool device)
{
    int64_t was = event->start_ns + event->duration_ns, end = was;
    close_ranges(row, event->start_ns, device);
    if (row->n > 0 && end >= row->open[row->n - 1].end_ns && end <= row->open[row->n - 1].was_ns)
        end = row->open[row->n - 1].end_ns - 1; /* after its start, because ranges that ended by then are closed */
    if (event->duration_ns > 0)
        event->duration_ns = end - event->start_ns;
    if (row->n < NEST_DEPTH) {
        row->open[row->n].event = event;
        row->open[row->n].end_ns = end;
        row->open[row->n++].was_ns = was;
    }
}

int weir_trace_nest(struct weir_trace *trace)
{
    struct nest *rows = calloc((size_t)trace->n_tracks + 1, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < trace->n_events; i++)
        if (trace->events[i].kind == WEIR_EVENT_RANGE && trace->events[i].duration_ns >= 0)
            nest_range(&rows[trace->events[i].track], &trace->events[i], trace->tracks[trace->events[i].track].device);
    free(rows);
    return 0;
}
