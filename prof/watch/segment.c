#include "base/text.h"
#include "prof/watch/segment_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT_NAME "weir-watch"

enum { VERSION = 2 };
static const uint64_t MAGIC = 0x6863746157726957; /* "WirWatch" */

const struct weir_stage_info weir_watch_stages[WEIR_WATCH_STAGES] = {
    [WEIR_WATCH_TOTAL_BATCH] = {.name = "00_TOTAL_batch", .kind = WEIR_KIND_INCLUSIVE},
    [WEIR_WATCH_START_WORKER] = {.name = "00b_start_worker", .kind = WEIR_KIND_WAIT},
    [WEIR_WATCH_GETITEM] = {.name = "01_getitem", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_OPEN] = {.name = "02_open", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_READ] = {.name = "03_read", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_IMAGE_DECODE] = {.name = "03b_image_decode", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_VIDEO_DECODE] = {.name = "03j_video_decode", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_TRANSFORM] = {.name = "05_transform", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_COLLATE] = {.name = "06_collate", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_PICKLE] = {.name = "06b_pickle", .kind = WEIR_KIND_WORK},
    [WEIR_WATCH_H2D_COPY] = {.name = "07_h2d_copy", .kind = WEIR_KIND_WORK, .consumer = true},
    [WEIR_WATCH_PIN_MEMORY] = {.name = "07c_pin_memory", .kind = WEIR_KIND_WORK, .consumer = true},
    [WEIR_WATCH_WAIT_DATA] = {.name = "08_wait_for_data", .kind = WEIR_KIND_WAIT, .consumer = true, .data_wait = true},
    [WEIR_WATCH_WAIT_WORK] = {.name = "09b_wait_for_work", .kind = WEIR_KIND_WAIT},
    [WEIR_WATCH_STEP] = {.name = "20_step", .kind = WEIR_KIND_WORK, .consumer = true},
};

/* ---- strings ---- */

void weir_shared_text_put(_Atomic uint64_t *words, int n, const char *text)
{
    size_t left = strnlen(text, (size_t)n * 8 - 1);
    for (int i = 0; i < n; i++) {
        uint64_t word = 0;
        size_t take = left < 8 ? left : 8;
        memcpy(&word, text, take);
        put(&words[i], word);
        text += take;
        left -= take;
    }
}

void weir_shared_text_get(char *text, size_t size, const _Atomic uint64_t *words, int n)
{
    char whole[WEIR_PATH_WORDS * 8 + 1] = "";
    for (int i = 0; i < n; i++) {
        uint64_t word = get(&words[i]);
        memcpy(whole + i * 8, &word, 8);
    }
    whole[n * 8] = '\0';
    snprintf(text, size, "%s", whole);
    weir_text_printable(text);
}

/* ---- settings ---- */

#define KEY(name)                                                                                                      \
    {                                                                                                                  \
#name, offsetof(struct weir_watch_settings, name)                                                              \
    }
const struct weir_watch_key weir_watch_number_keys[WEIR_SEGMENT_NUMBERS] = {
    KEY(num_workers),
    KEY(prefetch_factor),
    KEY(batch_size),
    KEY(pin_memory),
    KEY(persistent_workers),
    KEY(in_order),
    KEY(cuda),
    KEY(dataset_length),
    KEY(batches_per_epoch),
    KEY(iterable),
    KEY(torch_threads),
    KEY(cv2_threads),
    KEY(headroom),
    KEY(any_iterable),
    KEY(zone_ns),
    KEY(hdf5_opened),
    KEY(world_size),
    KEY(weir_items_s),
    KEY(watched_items_s),
};
const struct weir_watch_key weir_watch_text_keys[WEIR_SEGMENT_TEXTS] = {
    KEY(start_method), KEY(dataset), KEY(collate), KEY(torch_version), KEY(sampler), KEY(weir_path), KEY(weir_sample),
};

static int key_find(const struct weir_watch_key *keys, int n, const char *key)
{
    for (int i = 0; key && i < n && keys[i].key; i++)
        if (strcmp(keys[i].key, key) == 0)
            return i;
    return -1;
}

int weir_watch_number_key(const char *key)
{
    return key_find(weir_watch_number_keys, WEIR_SEGMENT_NUMBERS, key);
}

static struct weir_shared_loader *loader_of(struct weir_watch *watch, int loader)
{
    return watch && loader >= 0 && loader < WEIR_WATCH_LOADERS ? &watch->segment->loader[loader] : NULL;
}

int weir_watch_set(struct weir_watch *watch, int loader, const char *key, double value)
{
    int number = weir_watch_number_key(key);
    struct weir_shared_loader *to = loader_of(watch, loader);
    if (!to || number < 0)
        return -1;
    weir_shared_put_double(&to->numbers[number], value);
    atomic_fetch_or(&to->numbers_set, 1u << number);
    return 0;
}

int weir_watch_set_text(struct weir_watch *watch, int loader, const char *key, const char *value)
{
    int number = key_find(weir_watch_text_keys, WEIR_SEGMENT_TEXTS, key), is_name = strcmp(key, "name") == 0;
    struct weir_shared_loader *to = loader_of(watch, loader);
    if (!to || (number < 0 && !is_name) || !value)
        return -1;
    weir_shared_text_put(is_name ? to->name.words : to->texts[number].words, WEIR_TEXT_WORDS, value);
    return 0;
}

/* ---- rare changes ---- */

void weir_segment_lock(struct weir_segment *segment)
{
    for (int i = 0; i < 100; i++) {
        uint32_t free = 0;
        if (atomic_compare_exchange_strong(&segment->lock, &free, 1))
            return;
        nanosleep(&(struct timespec){0, 100 * 1000}, NULL);
    }
}

void weir_segment_unlock(struct weir_segment *segment)
{
    atomic_store(&segment->lock, 0);
}

int weir_watch_loader(struct weir_watch *watch, const char *name)
{
    if (!watch)
        return -1;
    struct weir_segment *segment = watch->segment;
    weir_segment_lock(segment);
    uint32_t number = atomic_load(&segment->loaders);
    if (number < WEIR_WATCH_LOADERS) {
        weir_shared_text_put(segment->loader[number].name.words, WEIR_TEXT_WORDS, name ? name : "");
        atomic_store(&segment->loaders, number + 1);
    }
    weir_segment_unlock(segment);
    return number < WEIR_WATCH_LOADERS ? (int)number : -1;
}

void weir_watch_unseen(struct weir_watch *watch, const char *what)
{
    char known[WEIR_TEXT_WORDS * 8], cut[WEIR_TEXT_WORDS * 8];
    if (!watch || !what)
        return;
    struct weir_segment *segment = watch->segment;
    snprintf(cut, sizeof cut, "%s", what);
    weir_segment_lock(segment);
    uint32_t n = atomic_load(&segment->unseen), i = 0;
    n = n < WEIR_WATCH_UNSEEN ? n : WEIR_WATCH_UNSEEN;
    for (; i < n; i++) {
        weir_shared_text_get(known, sizeof known, segment->unseen_text[i].words, WEIR_TEXT_WORDS);
        if (strcmp(known, cut) == 0)
            break;
    }
    if (i == n && n < WEIR_WATCH_UNSEEN) {
        weir_shared_text_put(segment->unseen_text[n].words, WEIR_TEXT_WORDS, cut);
        atomic_store(&segment->unseen, n + 1);
    }
    weir_segment_unlock(segment);
}

/* ---- files ---- */

void weir_own_file_set(struct weir_own_file *file, int fd)
{
    struct stat status;
    bool known = fd >= 0 && fstat(fd, &status) == 0;
    *file = (struct weir_own_file){.fd = fd};
    if (known) {
        file->device = status.st_dev;
        file->inode = status.st_ino;
    }
}

bool weir_own_file_is_open(const struct weir_own_file *file)
{
    struct stat status;
    return file->fd >= 0 && fstat(file->fd, &status) == 0 && status.st_dev == file->device &&
           status.st_ino == file->inode;
}

void weir_own_file_close(struct weir_own_file *file)
{
    if (weir_own_file_is_open(file))
        close(file->fd);
    file->fd = -1;
}

/* Opens the segment of another process. Only a segment's file is opened, because opening another one can have effects:
 * the program may have given the number to a device or a pipe. */
static int open_file(int pid, int fd)
{
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return -1;
    errno = EBADF;
    return strncmp(target, "/memfd:" SEGMENT_NAME " ", strlen("/memfd:" SEGMENT_NAME " ")) == 0
               ? open(path, O_RDWR | O_CLOEXEC)
               : -1;
}

/* ---- mapping ---- */

static const char OTHER_VERSION[] = "the training process uses another version of Weir";

/* reason: NULL = what explains itself. */
static struct weir_watch *failed(char *why, size_t why_size, int fd, const char *what, const char *reason)
{
    if (why && why_size > 0)
        snprintf(why, why_size, "weir.watch: %s%s%s; the loader runs unwatched", what, reason ? ": " : "",
                 reason ? reason : "");
    if (fd >= 0)
        close(fd);
    return NULL;
}

static struct weir_watch *map(int fd, char *why, size_t why_size)
{
    struct weir_watch *watch = calloc(1, sizeof *watch);
    void *at = watch
                   ? mmap(NULL, sizeof(struct weir_segment), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)
                   : MAP_FAILED;
    if (at == MAP_FAILED) {
        free(watch);
        return failed(why, why_size, fd, "the shared memory cannot be mapped", strerror(errno));
    }
    madvise(at, sizeof(struct weir_segment), MADV_DONTDUMP);
    weir_own_file_set(&watch->file, fd);
    watch->segment = at;
    atomic_store(&watch->users, 1);
    return watch;
}

struct weir_watch *weir_watch_create(char *why, size_t why_size)
{
    struct rlimit limit;
    int fd = memfd_create(SEGMENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return failed(why, why_size, fd, "shared memory cannot be created", strerror(errno));
    /* Growing a file past the limit would send SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(struct weir_segment)) {
        errno = EFBIG;
        return failed(why, why_size, fd, "the limit of file sizes (ulimit -f) is too low", strerror(errno));
    }
    if (ftruncate(fd, sizeof(struct weir_segment)) < 0)
        return failed(why, why_size, fd, "shared memory cannot be created", strerror(errno));
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); /* so that no process can cut it off */
    struct weir_watch *watch = map(fd, why, why_size);
    if (!watch)
        return NULL;
    weir_clock_init();
    struct weir_segment *segment = watch->segment;
    atomic_store(&segment->version, VERSION);
    atomic_store(&segment->bytes, (uint32_t)sizeof *segment);
    atomic_store(&segment->pid, getpid());
    atomic_store(&segment->clock_tsc, weir_clock.tsc);
    put(&segment->clock_ratio, weir_clock.ns_per_tick_32);
    atomic_store(&segment->magic, MAGIC);
    return watch;
}

struct weir_watch *weir_watch_open(int pid, int fd, char *why, size_t why_size)
{
    struct stat status;
    int own = open_file(pid, fd);
    if (own < 0)
        return failed(why, why_size, own, "the training process's shared memory cannot be opened", strerror(errno));
    if (fstat(own, &status) < 0 || status.st_size != (off_t)sizeof(struct weir_segment))
        return failed(why, why_size, own, OTHER_VERSION, NULL);
    struct weir_watch *watch = map(own, why, why_size);
    if (!watch)
        return NULL;
    const struct weir_segment *segment = watch->segment;
    if (atomic_load(&segment->magic) != MAGIC || atomic_load(&segment->version) != VERSION) {
        weir_watch_close(watch);
        return failed(why, why_size, -1, OTHER_VERSION, NULL);
    }
    if (!weir_clock.tsc && atomic_load(&segment->clock_tsc)) { /* spares the 20 ms of a calibration */
        weir_clock.ns_per_tick_32 = get(&segment->clock_ratio);
        weir_clock.tsc = true;
    }
    return watch;
}

int weir_watch_fd(const struct weir_watch *watch)
{
    return watch ? watch->file.fd : -1;
}

void weir_watch_release(struct weir_watch *watch)
{
    if (atomic_fetch_sub(&watch->users, 1) > 1)
        return;
    if (watch->reports_free)
        watch->reports_free(watch->reports);
    munmap(watch->segment, sizeof *watch->segment);
    weir_own_file_close(&watch->file);
    free(watch);
}
