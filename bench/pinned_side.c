#include "bench/pinned_side.h"
#include "weir/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PRIME = 7919, BLOCKS_MIN = 4 };

/* ---- frames ---- */

static int add_file(struct pinned_frames *f, const char *path, struct weir_err *err)
{
    struct stat st;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &st) != 0) {
        int rc = weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
        if (file >= 0)
            close(file);
        return rc;
    }
    int64_t n = S_ISREG(st.st_mode) ? st.st_size / PINNED_FRAME_BYTES : 0;
    int *files = realloc(f->files, ((size_t)f->n_files + 1) * sizeof *files);
    f->files = files ? files : f->files;
    struct pinned_place *places = realloc(f->places, ((size_t)f->n + (size_t)n + 1) * sizeof *places);
    f->places = places ? places : f->places;
    if (!files || !places) {
        close(file);
        return weir_err_set(err, -ENOMEM, "out of memory");
    }
    /* Pieces are counted from the end of the file, because a header may precede the frames. */
    for (int64_t i = 0; i < n; i++)
        f->places[f->n++] = (struct pinned_place){f->n_files, st.st_size - (n - i) * PINNED_FRAME_BYTES};
    f->files[f->n_files++] = file;
    return 0;
}

static int add_folder(struct pinned_frames *f, const char *folder, struct weir_err *err)
{
    struct dirent **entries;
    int rc = 0, n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0)
        return weir_err_set(err, -errno, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat st;
        bool fits = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path;
        if (rc == 0 && fits && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            rc = add_file(f, path, err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int read_frame(const struct pinned_frames *f, int i, uint8_t *to)
{
    const struct pinned_place *place = &f->places[i];
    for (size_t done = 0; done < PINNED_FRAME_BYTES;) {
        ssize_t n = pread(f->files[place->file], to + done, PINNED_FRAME_BYTES - done, place->offset + (int64_t)done);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return -EIO;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int pinned_frames_open(struct pinned_frames *frames, const char *data, struct weir_err *err)
{
    struct stat st;
    *frames = (struct pinned_frames){0};
    bool folder = stat(data, &st) == 0 && S_ISDIR(st.st_mode);
    int rc = folder ? add_folder(frames, data, err) : add_file(frames, data, err);
    if (rc == 0 && frames->n == 0)
        rc = weir_err_set(err, -ENODATA, "%s: no file is as large as a frame (%d bytes)", data, PINNED_FRAME_BYTES);
    uint8_t *frame = rc == 0 ? malloc(PINNED_FRAME_BYTES) : NULL;
    if (rc == 0 && !frame)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < frames->n && rc == 0; i++)
        if (read_frame(frames, i, frame) < 0)
            rc = weir_err_set(err, -EIO, "%s: a file cannot be read", data);
    free(frame);
    return rc;
}

void pinned_frames_close(struct pinned_frames *frames)
{
    for (int i = 0; i < frames->n_files; i++)
        close(frames->files[i]);
    free(frames->files);
    free(frames->places);
    *frames = (struct pinned_frames){0};
}

/* ---- the ring ---- */

int pinned_ring_open(struct pinned_ring *ring, const struct weir_gpu_ops *ops, struct weir_gpu *gpu,
                     struct weir_err *err)
{
    size_t bytes = PINNED_BLOCKS * PINNED_BLOCK_BYTES;
    *ring = (struct pinned_ring){.ops = ops, .gpu = gpu};
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *target = NULL;
    if (memory == MAP_FAILED)
        return weir_err_set(err, -ENOMEM, "out of memory for a ring of %.1f MB", (double)bytes / 1e6);
    madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 0, bytes);
    int rc = ops->pin(gpu, memory, bytes, err);
    if (rc < 0) {
        munmap(memory, bytes);
        return rc;
    }
    ring->memory = memory;
    rc = ops->alloc(gpu, PINNED_FLYING * PINNED_BLOCK_BYTES, &target, err);
    ring->target = target;
    rc = rc < 0 ? rc : ops->stream_new(gpu, false, &ring->stream, err);
    for (int i = 0; i < PINNED_FLYING && rc == 0; i++)
        rc = ops->event_new(gpu, false, &ring->events[i], err);
    return rc;
}

void pinned_ring_close(struct pinned_ring *ring)
{
    for (int i = 0; i < PINNED_FLYING; i++)
        if (ring->events[i])
            ring->ops->event_free(ring->gpu, ring->events[i]);
    if (ring->stream)
        ring->ops->stream_free(ring->gpu, ring->stream);
    if (ring->target)
        ring->ops->free(ring->gpu, ring->target);
    if (ring->memory) {
        ring->ops->unpin(ring->gpu, ring->memory);
        munmap(ring->memory, PINNED_BLOCKS * PINNED_BLOCK_BYTES);
    }
    *ring = (struct pinned_ring){0};
}

const char *pinned_kind_name(enum pinned_kind kind)
{
    static const char *const names[PINNED_KINDS] = {
        [PINNED_READ] = "read", [PINNED_BUS] = "bus", [PINNED_BOTH] = "both"};
    return names[kind];
}

/* ---- a run ----
 *
 * Frame i is at position i % PINNED_BLOCK_FRAMES of block i / PINNED_BLOCK_FRAMES. Block b is in ring entry b %
 * PINNED_BLOCKS. Each reader takes the next frame number. Block b can be written once block b - PINNED_BLOCKS is free.
 */

struct run {
    const struct pinned_ring *ring;
    const struct pinned_frames *frames;
    enum pinned_kind kind;
    double seconds;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    _Atomic uint64_t next;   /* number of the next frame to read */
    uint64_t free_blocks;    /* blocks below free_blocks + PINNED_BLOCKS can be written */
    int full[PINNED_BLOCKS]; /* number of frames read into each ring entry */
    _Atomic bool stop, unreadable;
};

static void stop(struct run *run)
{
    pthread_mutex_lock(&run->mutex);
    run->stop = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
}

/* Waits until the block can be written. Returns false if the run is over. */
static bool wait_until_free(struct run *run, uint64_t block)
{
    if (run->kind == PINNED_READ)
        return !run->stop;
    pthread_mutex_lock(&run->mutex);
    while (!run->stop && block >= run->free_blocks + PINNED_BLOCKS)
        pthread_cond_wait(&run->changed, &run->mutex);
    pthread_mutex_unlock(&run->mutex);
    return !run->stop;
}

static void note_frame(struct run *run, uint64_t block)
{
    pthread_mutex_lock(&run->mutex);
    if (++run->full[block % PINNED_BLOCKS] == PINNED_BLOCK_FRAMES)
        pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
}

static void *reader_main(void *user)
{
    struct run *run = user;
    for (;;) {
        uint64_t i = atomic_fetch_add(&run->next, 1), block = i / PINNED_BLOCK_FRAMES;
        if (!wait_until_free(run, block))
            return NULL;
        uint8_t *to = run->ring->memory + (size_t)(i % (PINNED_BLOCKS * PINNED_BLOCK_FRAMES)) * PINNED_FRAME_BYTES;
        if (read_frame(run->frames, (int)(i * PRIME % (uint64_t)run->frames->n), to) < 0) {
            run->unreadable = true;
            stop(run);
            return NULL;
        }
        if (run->kind == PINNED_BOTH)
            note_frame(run, block);
    }
}

/* Waits until the block is full. Returns false if a file cannot be read. */
static bool wait_until_full(struct run *run, uint64_t block)
{
    if (run->kind == PINNED_BUS)
        return true;
    pthread_mutex_lock(&run->mutex);
    while (!run->stop && run->full[block % PINNED_BLOCKS] < PINNED_BLOCK_FRAMES)
        pthread_cond_wait(&run->changed, &run->mutex);
    run->full[block % PINNED_BLOCKS] = 0;
    pthread_mutex_unlock(&run->mutex);
    return !run->stop;
}

static void free_block(struct run *run, uint64_t block)
{
    pthread_mutex_lock(&run->mutex);
    run->free_blocks = block + 1;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
}

static int queue_copy(struct run *run, uint64_t block, struct weir_err *err)
{
    const struct pinned_ring *ring = run->ring;
    const uint8_t *from = ring->memory + (size_t)(block % PINNED_BLOCKS) * PINNED_BLOCK_BYTES;
    uint8_t *to = ring->target + (size_t)(block % PINNED_FLYING) * PINNED_BLOCK_BYTES;
    int rc = ring->ops->copy_in(ring->gpu, to, from, PINNED_BLOCK_BYTES, ring->stream, err);
    return rc < 0 ? rc : ring->ops->record(ring->gpu, ring->events[block % PINNED_FLYING], ring->stream, err);
}

/* Copies blocks to the GPU. The rate does not include the first block, since the pipeline is not full before its copy
 * ends. */
static int copy_blocks(struct run *run, double *rate, struct weir_err *err)
{
    const struct pinned_ring *ring = run->ring;
    uint64_t start_ns = weir_clock_monotonic_ns(), first_ns = 0, now_ns = start_ns, length_ns, passed = 0;
    int rc = 0;
    length_ns = (uint64_t)(run->seconds * 1e9);
    for (uint64_t block = 0; passed < BLOCKS_MIN || now_ns - start_ns < length_ns; block++) {
        if (!wait_until_full(run, block))
            return weir_err_set(err, -EIO, "a file cannot be read");
        rc = queue_copy(run, block, err);
        if (rc < 0)
            return rc;
        if (block + 1 < PINNED_FLYING)
            continue;
        rc = ring->ops->wait(ring->gpu, ring->events[passed % PINNED_FLYING], err);
        if (rc < 0)
            return rc;
        now_ns = weir_clock_monotonic_ns();
        first_ns = passed == 0 ? now_ns : first_ns;
        free_block(run, passed++);
    }
    *rate = (double)(passed - 1) * (double)PINNED_BLOCK_BYTES / ((double)(now_ns - first_ns) / 1e9);
    for (int i = 0; i < PINNED_FLYING && rc == 0; i++)
        rc = ring->ops->wait(ring->gpu, ring->events[i], err);
    return rc;
}

/* Measures the readers without copies. The first fifth of the time is a warm-up. */
static int watch_readers(struct run *run, double *rate, struct weir_err *err)
{
    uint64_t start_ns = weir_clock_monotonic_ns(), first_ns = 0, now_ns = start_ns, first = 0, now = 0;
    double seconds = 0;
    while (!run->stop && (seconds < run->seconds || now - first < BLOCKS_MIN * PINNED_BLOCK_FRAMES)) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        now_ns = weir_clock_monotonic_ns();
        now = run->next;
        if (!first_ns && (double)(now_ns - start_ns) / 1e9 >= run->seconds / 5)
            first_ns = now_ns, first = now;
        seconds = first_ns ? (double)(now_ns - first_ns) / 1e9 : 0;
    }
    if (run->unreadable)
        return weir_err_set(err, -EIO, "a file cannot be read");
    *rate = (double)(now - first) * PINNED_FRAME_BYTES / seconds;
    return 0;
}

int pinned_run(const struct pinned_ring *ring, const struct pinned_frames *frames, enum pinned_kind kind, int threads,
               double seconds, double *rate, struct weir_err *err)
{
    struct run run = {.ring = ring, .frames = frames, .kind = kind, .seconds = seconds};
    pthread_t readers[PINNED_THREADS_MAX];
    int wanted = kind == PINNED_BUS ? 0 : threads, started = 0, rc = 0;
    pthread_mutex_init(&run.mutex, NULL);
    pthread_cond_init(&run.changed, NULL);
    while (started < wanted && pthread_create(&readers[started], NULL, reader_main, &run) == 0)
        started++;
    if (started < wanted)
        rc = weir_err_set(err, -EAGAIN, "cannot start %d threads", wanted);
    else
        rc = kind == PINNED_READ ? watch_readers(&run, rate, err) : copy_blocks(&run, rate, err);
    stop(&run);
    for (int i = 0; i < started; i++)
        pthread_join(readers[i], NULL);
    pthread_cond_destroy(&run.changed);
    pthread_mutex_destroy(&run.mutex);
    return rc;
}
