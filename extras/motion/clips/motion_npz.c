/* Reads NumPy motion files (NPZ). */
#include "base/shortage.h"
#include "extras/motion/clips/clips_priv.h"
#include "extras/motion/clips/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    int fd;
    struct weir_raw_file raw;
    struct weir_npz *npz;
};

static bool has(void *file, const char *key)
{
    return weir_npz_has(((struct file *)file)->npz, key);
}

static int read_array(void *file, const char *key, struct weir_file_array *array, struct weir_err *err)
{
    return weir_npz_read(((struct file *)file)->npz, key, array, err);
}

static void close_file(void *user)
{
    struct file *file = user;
    weir_npz_close(&file->npz);
    if (file->fd >= 0)
        close(file->fd);
    free(file);
}

static const struct weir_motion_source_ops ops = {.has = has, .read = read_array, .close = close_file};

static struct file *new_file(struct weir_err *err)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        weir_no_memory(err);
    else
        file->fd = -1;
    return file;
}

static int open_archive(struct weir_motion_source *source, struct file *file, const struct weir_raw_file *raw,
                        struct weir_err *err)
{
    int rc = weir_npz_open(&file->npz, raw, err);
    if (rc < 0)
        close_file(file);
    else
        *source = (struct weir_motion_source){&ops, file};
    return rc;
}

int weir_motion_raw_npz_open(struct weir_motion_source *source, const struct weir_raw_file *raw, struct weir_err *err)
{
    struct file *file = new_file(err);
    return file ? open_archive(source, file, raw, err) : -ENOMEM;
}

int weir_motion_npz_open(struct weir_motion_source *source, const char *path, struct weir_err *err)
{
    struct stat st;
    struct file *file = new_file(err);
    if (!file)
        return -ENOMEM;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &st) != 0) {
        int rc = -errno;
        close_file(file);
        return weir_err_set(err, rc, "%s; %s", strerror(-rc), weir_open_advice(rc));
    }
    file->raw = (struct weir_raw_file){weir_raw_read, &file->fd, 0, (uint64_t)st.st_size};
    return open_archive(source, file, &file->raw, err);
}
