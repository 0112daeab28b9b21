#include "analyze/trials/copies.h"
#include "analyze/trials/child.h"
#include "base/hash.h"
#include "base/resources.h"
#include "decoders/frame_kind.h"
#include "io/storage.h"
#include "origin/url.h"
#include "pipeline/samples/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, DESCRIPTORS = 32 };

/* ---- the source ---- */

static void count_frames(const struct weir_dataset *dataset, const struct weir_camera_probe *probes,
                         struct weir_copy_source *source)
{
    uint64_t steps = 0;
    source->episodes = weir_dataset_episodes(dataset);
    for (int e = 0; e < source->episodes; e++)
        steps += (uint64_t)weir_dataset_steps(dataset, e);
    for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
        uint64_t pixels = (uint64_t)probes[c].width * (uint64_t)probes[c].height;
        source->frames += steps;
        source->raw_bytes += steps * pixels * (weir_frame_is_depth(probes[c].kind) ? 2 : 3);
        if (!weir_frame_is_depth(probes[c].kind))
            source->codec = weir_frame_kind_name(weir_probe_kind(&probes[c]));
    }
}

static void look_at_files(const struct weir_dataset *dataset, struct weir_copy_source *source)
{
    for (int i = 0; i < weir_dataset_files(dataset); i++) {
        struct weir_dataset_file file;
        weir_dataset_file(dataset, i, &file);
        source->bytes += file.size_bytes;
        const uint64_t parts[] = {source->fingerprint, weir_hash64(file.path, strlen(file.path)), file.size_bytes,
                                  (uint64_t)file.mtime_ns};
        source->fingerprint = weir_hash64(parts, sizeof parts);
    }
}

int weir_copy_source_of(struct weir_dataset *dataset, struct weir_copy_source *source, struct weir_err *err)
{
    struct weir_camera_probe *probes = calloc((size_t)weir_dataset_cameras(dataset) + 1, sizeof *probes);
    *source = (struct weir_copy_source){.codec = weir_frame_kind_name(WEIR_FRAME_RAW),
                                        .layout = weir_dataset_layout(dataset, 0)};
    int rc = probes ? weir_probe_cameras(dataset, true, -1, probes, err) : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0) {
        count_frames(dataset, probes, source);
        look_at_files(dataset, source);
    }
    free(probes);
    return rc < 0 ? rc : 0;
}

/* ---- names ---- */

static bool is_made(const char *codec)
{
    int kind = weir_frame_kind_from_name(codec);
    return kind >= 0 && weir_frame_kind_row((enum weir_frame_kind)kind)->is_made;
}

int weir_copy_spec_parse(struct weir_copy_spec *spec, const char *text, const char *source_codec, struct weir_err *err)
{
    memset(spec, 0, sizeof *spec);
    if (strcmp(text, "as-is") == 0) {
        snprintf(spec->name, sizeof spec->name, "as-is");
        snprintf(spec->codec, sizeof spec->codec, "%s", source_codec);
        return 0;
    }
    size_t length = strcspn(text, ":");
    const char *codec = text[length] ? text + length + 1 : source_codec;
    bool known = is_made(codec) || strcmp(codec, source_codec) == 0;
    if (length == 0 || length >= sizeof spec->format || !known)
        return weir_err_set(
            err, -EINVAL,
            "--formats: '%s' is neither as-is nor a format and a codec (jpeg, png, raw), such as hdf5:raw", text);
    memcpy(spec->format, text, length);
    snprintf(spec->codec, sizeof spec->codec, "%s", codec);
    snprintf(spec->name, sizeof spec->name, "%s:%s", spec->format, spec->codec);
    return 0;
}

const char *weir_copy_codec_option(const struct weir_copy_spec *spec, const char *source_codec)
{
    return strcmp(spec->codec, source_codec) == 0 ? "keep" : spec->codec;
}

uint64_t weir_copy_bytes(const struct weir_copy_source *source, const struct weir_copy_spec *spec, int sample)
{
    double part = sample > 0 && sample < source->episodes ? (double)sample / source->episodes : 1;
    uint64_t bytes =
        source->raw_bytes; /* also the limit for compressed frames, and for raw frames in compressed chunks */
    int kind = weir_frame_kind_from_name(spec->codec);
    if (strcmp(spec->codec, source->codec) == 0 && source->bytes < bytes && kind != WEIR_FRAME_RAW)
        bytes = source->bytes;
    else if (kind == WEIR_FRAME_JPEG)
        bytes /= 4; /* JPEGs of quality 95 are this large only if they show noise */
    return !*spec->format ? 0 : (uint64_t)((double)bytes * part);
}

int weir_copy_path(char *path, size_t size, const char *folder, const struct weir_copy_spec *spec,
                   const struct weir_copy_source *source, int sample, const char *options, const char *suffix)
{
    uint64_t parts[] = {source->fingerprint, (uint64_t)sample, weir_hash64(options, strlen(options))};
    int n = snprintf(path, size, "%s/%s-%s-%016" PRIx64 "%s", folder, spec->format, spec->codec,
                     weir_hash64(parts, sizeof parts), suffix);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* ---- a temporary folder ---- */

static void hold_interrupts(const volatile sig_atomic_t *interrupted, bool hold)
{
    if (interrupted == &weir_interrupted)
        weir_hold_interrupts(hold);
}

int weir_copy_folder_make(char **folder, const char *name, const volatile sig_atomic_t *interrupted,
                          struct weir_err *err)
{
    const char *parent = getenv("TMPDIR");
    if (asprintf(folder, "%s/weir-%s-XXXXXX", parent && *parent ? parent : "/tmp", name) < 0) {
        *folder = NULL;
        return weir_err_set(err, -ENOMEM, "out of memory");
    }
    hold_interrupts(interrupted, true);
    if (mkdtemp(*folder))
        return 0;
    int code = -errno;
    hold_interrupts(interrupted, false);
    weir_err_set(err, code, "%s: cannot be created: %s; set TMPDIR to a writable folder", *folder, strerror(-code));
    free(*folder);
    *folder = NULL;
    return code;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

void weir_copy_folder_remove(char **folder, const volatile sig_atomic_t *interrupted)
{
    if (!*folder)
        return;
    nftw(*folder, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    hold_interrupts(interrupted, false);
    free(*folder);
    *folder = NULL;
}

/* ---- files ---- */

/* Static, because nftw passes no user data. Only one thread at a time can list files. */
static struct weir_path_list *found;
static uint64_t found_bytes;

static int note_file(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)where;
    if (kind != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    found_bytes += (uint64_t)st->st_size;
    return weir_path_list_add(found, strdup(path));
}

int weir_copy_files(const char *path, struct weir_path_list *files, uint64_t *bytes, struct weir_err *err)
{
    memset(files, 0, sizeof *files);
    found = files;
    found_bytes = 0;
    int rc = nftw(path, note_file, DESCRIPTORS, FTW_PHYS);
    *bytes = found_bytes;
    if (rc == 0)
        return 0;
    rc = rc < -1 ? rc : -errno;
    weir_path_list_free(files);
    return weir_err_set(err, rc, "%s: cannot be listed: %s", path, strerror(-rc));
}

int weir_copy_source_files(const struct weir_dataset *dataset, struct weir_path_list *files, uint64_t *bytes,
                           struct weir_err *err)
{
    char path[WEIR_READ_PATH_MAX];
    int rc = 0;
    memset(files, 0, sizeof *files);
    *bytes = 0;
    if (weir_dataset_cameras(dataset) == 0)
        return weir_err_set(err, -ENOTSUP,
                            "the dataset has no cameras, and rates of images are compared; `weir run` measures samples "
                            "per second");
    for (int i = 0; i < weir_dataset_read_files(dataset) && rc == 0; i++) {
        struct weir_dataset_file file;
        weir_dataset_read_file(dataset, i, &file, path);
        *bytes += file.size_bytes;
        rc = weir_url_is(file.path) ? 0 : weir_path_list_add(files, strdup(file.path));
    }
    if (rc == 0)
        return 0;
    weir_path_list_free(files);
    return weir_err_set(err, rc, rc == -EFBIG ? "its frames are in too many files" : "out of memory");
}

static bool file_system_of(const char *path, struct statfs *fs)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    while (statfs(folder, fs) != 0) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            return statfs(".", fs) == 0;
        slash[slash == folder ? 1 : 0] = '\0';
        if (strcmp(folder, "/") == 0)
            return statfs("/", fs) == 0;
    }
    return true;
}

uint64_t weir_copy_free_bytes(const char *path)
{
    struct statfs fs;
    return file_system_of(path, &fs) ? (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize : 0;
}

bool weir_copy_in_memory(const char *path)
{
    struct statfs fs;
    return file_system_of(path, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* Sets *size to the file's size and *cached to the bytes of it in the page cache. Unless buffer is NULL, first reads a
 * file that is not fully cached. */
static int visit(const char *path, uint8_t *buffer, uint64_t *size, uint64_t *cached)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = fd < 0 || fstat(fd, &st) != 0 ? -errno : 0;
    if (rc == 0) {
        *size = (uint64_t)st.st_size;
        rc = weir_page_cache_bytes(fd, 0, *size, cached);
    }
    if (rc == 0 && buffer && *cached < *size) {
        ssize_t n;
        for (off_t at = 0; (n = pread(fd, buffer, BLOCK, at)) > 0; at += n)
            continue;
        rc = n < 0 ? -errno : weir_page_cache_bytes(fd, 0, *size, cached);
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

static int visit_all(const struct weir_path_list *files, uint8_t *buffer, uint64_t *bytes, double *part,
                     struct weir_err *err)
{
    uint64_t cached = 0;
    *bytes = 0;
    for (int i = 0; i < files->n; i++) {
        uint64_t size = 0, here = 0;
        int rc = visit(files->paths[i], buffer, &size, &here);
        if (rc == -EPERM || rc == -ENOSYS || rc == -EINVAL) {
            *part = -1;
            return 0;
        }
        if (rc < 0)
            return weir_err_set(err, rc, "%s: %s", files->paths[i], strerror(-rc));
        *bytes += size;
        cached += here;
    }
    *part = *bytes ? (double)cached / (double)*bytes : -1;
    return 0;
}

int weir_copy_warm(const struct weir_path_list *files, double *cached, struct weir_err *err)
{
    uint64_t bytes, available = weir_memory_available_bytes();
    int rc = visit_all(files, NULL, &bytes, cached, err);
    if (rc < 0 || *cached < 0 || *cached >= 1 || (available && bytes > available))
        return rc;
    uint8_t *buffer = malloc(BLOCK);
    if (!buffer)
        return weir_err_set(err, -ENOMEM, "out of memory");
    rc = visit_all(files, buffer, &bytes, cached, err);
    free(buffer);
    return rc;
}
