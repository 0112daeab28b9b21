#include "tests/loader_fixture.h"
#include "datasets/synth.h"
#include "pipeline/checksum.h"
#include "pipeline/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

void fixture_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("fixture: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void fixture_open(void)
{
    snprintf(folder, sizeof folder, "/tmp/weir-loader-XXXXXX");
    if (!mkdtemp(folder))
        fixture_die("%s: %s", folder, strerror(errno));
}

void fixture_close(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fixture_path(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *fixture_synth(const char *name, const char *format, int episodes, int steps, int width, int height,
                          const char *cameras)
{
    struct weir_synth_config config;
    struct weir_err err = WEIR_ERR_NONE;
    weir_synth_config_default(&config);
    config.out = fixture_path(name);
    config.format = format;
    config.episodes = episodes;
    config.steps = steps;
    config.width = width;
    config.height = height;
    config.cameras = cameras;
    config.seed = 5;
    config.threads = 2;
    if (weir_synth_write(&config, &err) < 0)
        fixture_die("%s", err.text);
    return config.out;
}

const char *fixture_episode(const char *data, const char *format, int episode)
{
    static char paths[8][640];
    static int next;
    char *path = paths[next++ % 8];
    if (strcmp(format, "astrobench") == 0)
        snprintf(path, sizeof paths[0], "%s/data/synthetic/diffuse/episode_00_%04d_expert_diffuse.h5", data, episode);
    else
        snprintf(path, sizeof paths[0], "%s/episode_%d.hdf5", data, episode);
    return path;
}

const char *fixture_real(const char *name)
{
    static char paths[8][1024];
    static int next;
    char *path = paths[next++ % 8];
    const char *data = getenv("WEIR_DATA");
    snprintf(path, sizeof paths[0], "%s/episodes/%s", data ? data : "../shared/data", name);
    if (access(path, R_OK) == 0)
        return path;
    fprintf(stderr, "skipped: %s is not there (set WEIR_DATA)\n", path);
    return NULL;
}

/* The extent of a frame, heap references followed: reads until the payload is known, as the loader does. */
static void find_frame(struct weir_dataset *dataset, int episode, int camera, int t, struct weir_location *at,
                       char *path, size_t size)
{
    if (weir_locate(dataset, episode, camera, t, at) != WEIR_HOW_EXTENT)
        fixture_die("frame %d of camera %d of episode %d has no extent", t, camera, episode);
    int rc = 1;
    while (rc == 1) {
        struct weir_dataset_file file;
        const char *reason;
        weir_dataset_file(dataset, at->file, &file);
        snprintf(path, size, "%s", file.path);
        uint8_t *bytes = malloc(at->length);
        int fd = open(path, O_RDONLY);
        if (!bytes || fd < 0 || pread(fd, bytes, at->length, (off_t)at->offset) != (ssize_t)at->length)
            fixture_die("%s: cannot be read", path);
        close(fd);
        rc = weir_unwrap(dataset, at, bytes, &reason);
        free(bytes);
    }
    if (rc < 0)
        fixture_die("%s: frame %d is bad already", path, t);
}

void fixture_damage(const char *data, int episode, int camera, int t, enum fixture_damage how)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.path = data};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_location at;
    char path[1024];
    if (weir_dataset_open(&dataset, &config, &err) < 0)
        fixture_die("%s", err.text);
    find_frame(dataset, episode, camera, t, &at, path, sizeof path);
    weir_dataset_close(&dataset);
    off_t begin = (off_t)(at.offset + at.payload);
    size_t length = how == FIXTURE_NO_SOI ? 1 : at.payload_length / 2;
    uint8_t *bytes = calloc(1, length);
    int fd = open(path, O_WRONLY);
    if (how == FIXTURE_ZEROED)
        begin += (off_t)(at.payload_length - length);
    if (!bytes || fd < 0 || pwrite(fd, bytes, length, begin) != (ssize_t)length)
        fixture_die("%s: cannot be damaged", path);
    close(fd);
    free(bytes);
}

struct weir_loader *fixture_loader(const struct weir_loader_config *config)
{
    struct weir_loader *loader;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_loader_open(&loader, config, &err) < 0)
        fixture_die("%s", err.text);
    return loader;
}

char *fixture_checksums(const struct weir_loader_config *config, int *rc, struct weir_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    *err = WEIR_ERR_NONE;
    while ((*rc = weir_loader_next(loader, &batch, err)) > 0) {
        weir_checksum_line(out, batch);
        weir_loader_release(loader, batch);
    }
    weir_loader_close(&loader);
    fclose(out);
    return text;
}

static bool same_frame(const struct weir_batch *batch, int history, int i, int j)
{
    int back_i = i % history, back_j = j % history;
    struct weir_sample a = batch->samples[i / history], b = batch->samples[j / history];
    return a.episode == b.episode && (a.t > back_i ? a.t - back_i : 0) == (b.t > back_j ? b.t - back_j : 0);
}

uint64_t fixture_frames(const struct weir_batch *batch, int history)
{
    uint64_t n = 0;
    for (int i = 0; i < batch->n * history; i++) {
        bool before = false;
        for (int j = 0; j < i && !before; j++)
            before = same_frame(batch, history, i, j);
        n += !before;
    }
    return n;
}

uint8_t *fixture_test_image(const char *name, size_t *length)
{
    char relative[128];
    snprintf(relative, sizeof relative, "../jpeg/%s", name);
    const char *path = fixture_real(relative);
    FILE *file = path ? fopen(path, "r") : NULL;
    *length = 0;
    if (!file)
        return NULL;
    uint8_t *bytes = malloc(1 << 20);
    *length = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}
