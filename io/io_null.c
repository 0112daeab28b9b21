/* null: serves frames from memory, to measure the rest of the pipeline without reading. Each file is copied into memory
 * as a whole on first use. The pixels are the same as with any other engine. */
#include "base/files.h"
#include "base/resources.h"
#include "base/text.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct image {
    pthread_mutex_t lock;
    uint8_t *_Atomic bytes; /* NULL until the file is loaded */
    uint64_t size;
};

struct images {
    int count;
    struct image image[];
};

static int shared_open(void **shared, struct weir_file_set *set, struct weir_err *err)
{
    int count = weir_file_set_count(set);
    uint64_t total = 0;
    for (int i = 0; i < count; i++)
        total += weir_file_set_size(set, i);
    uint64_t available = weir_memory_available_bytes();
    if (available && total > available)
        return weir_err_set(err, -ENOMEM,
                            "io engine null keeps the dataset in memory: it needs %s, but only %s are free; use "
                            "fewer episodes or --io pread",
                            weir_size((double)total).text, weir_size((double)available).text);
    struct images *images = calloc(1, sizeof *images + sizeof images->image[0] * (size_t)count);
    if (!images)
        return weir_err_set(err, -ENOMEM, "out of memory");
    images->count = count;
    for (int i = 0; i < count; i++) {
        pthread_mutex_init(&images->image[i].lock, NULL);
        images->image[i].size = weir_file_set_size(set, i);
    }
    *shared = images;
    return 0;
}

static void shared_close(void *shared)
{
    struct images *images = shared;
    for (int i = 0; i < images->count; i++) {
        if (images->image[i].bytes)
            weir_memory_unmap(images->image[i].bytes, images->image[i].size);
        pthread_mutex_destroy(&images->image[i].lock);
    }
    free(images);
}

static int load(struct image *image, int fd)
{
    void *bytes = mmap(NULL, image->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return -ENOMEM;
    int rc = weir_read_at(fd, 0, bytes, image->size);
    if (rc < 0)
        weir_memory_unmap(bytes, image->size);
    else
        image->bytes = bytes;
    return rc;
}

static int read_extent(void *shared, int file, int fd, uint64_t offset, size_t length, void *buffer,
                       const uint8_t **data, struct weir_err *err)
{
    (void)err;
    (void)buffer;
    struct image *image = &((struct images *)shared)->image[file];
    if (offset > image->size || length > image->size - offset)
        return -ENODATA;
    if (!image->bytes) {
        pthread_mutex_lock(&image->lock);
        int rc = image->bytes ? 0 : load(image, fd);
        pthread_mutex_unlock(&image->lock);
        if (rc < 0)
            return rc;
    }
    *data = image->bytes + offset;
    return 0;
}

const struct weir_io_ops weir_io_null = {
    .name = "null",
    .summary = "serves files from memory after reading each once",
    .from_memory = true,
    .shared_open = shared_open,
    .shared_close = shared_close,
    .read = read_extent,
};
