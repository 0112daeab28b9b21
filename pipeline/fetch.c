#include "pipeline/fetch.h"
#include "prof/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t FRAME_MAX_BYTES = (size_t)1 << 31;

int weir_fetch_files(const struct weir_dataset *dataset, struct weir_file_set **files)
{
    int rc = weir_file_set_open(files, 0);
    for (int i = 0; i < weir_dataset_files(dataset) && rc >= 0; i++) {
        struct weir_dataset_file file;
        weir_dataset_file(dataset, i, &file);
        struct weir_file_id id = {file.size_bytes, file.device, file.inode, file.mtime_ns};
        rc = weir_file_set_add(*files, file.path, &id);
    }
    if (rc < 0)
        weir_file_set_close(files);
    return rc < 0 ? rc : 0;
}

static int grow(struct weir_fetcher *fetcher, size_t bytes)
{
    if (bytes <= fetcher->capacity)
        return 0;
    if (bytes > FRAME_MAX_BYTES) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "a frame of %zu bytes makes no sense", bytes);
        return -EBADMSG;
    }
    uint8_t *buffer = realloc(fetcher->buffer, bytes);
    if (!buffer) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "out of memory for %zu bytes", bytes);
        return -ENOMEM;
    }
    fetcher->buffer = buffer;
    fetcher->capacity = bytes;
    return 0;
}

int weir_fetcher_open(struct weir_fetcher *fetcher, struct weir_dataset *dataset, struct weir_file_set *files,
                      const char *io, struct weir_err *err)
{
    memset(fetcher, 0, sizeof *fetcher);
    fetcher->dataset = dataset;
    int rc = weir_reader_open(&fetcher->reader, io, files, err);
    if (rc < 0)
        return rc;
    rc = grow(fetcher, weir_dataset_extent_max(dataset));
    if (rc == 0)
        return 0;
    weir_fetcher_close(fetcher);
    return weir_err_set(err, rc, "%s", fetcher->reason);
}

void weir_fetcher_close(struct weir_fetcher *fetcher)
{
    weir_reader_close(&fetcher->reader);
    free(fetcher->buffer);
    fetcher->buffer = NULL;
    fetcher->capacity = 0;
}

static int through_library(struct weir_fetcher *fetcher, int episode, int camera, int t, const uint8_t **bytes,
                           size_t *length)
{
    WEIR_ZONE(WEIR_STAGE_READ_BYTES);
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    while ((rc = weir_fetch(fetcher->dataset, episode, camera, t, fetcher->buffer, fetcher->capacity, length, &err)) ==
           -ENOSPC) {
        rc = grow(fetcher, *length);
        if (rc < 0)
            return rc;
    }
    if (rc < 0) {
        snprintf(fetcher->reason, sizeof fetcher->reason, "%.*s", WEIR_FETCH_REASON - 1, err.text);
        return rc;
    }
    /* One writer. */
    atomic_store_explicit(&fetcher->fallbacks, fetcher->fallbacks + 1, memory_order_relaxed);
    atomic_store_explicit(&fetcher->fallback_bytes, fetcher->fallback_bytes + *length, memory_order_relaxed);
    *bytes = fetcher->buffer;
    return 0;
}

static int by_extent(struct weir_fetcher *fetcher, struct weir_location *location, void *into, size_t into_bytes,
                     const uint8_t **bytes, size_t *length)
{
    for (;;) {
        bool direct = into && !location->heap_slot && location->length == into_bytes;
        const uint8_t *data;
        int rc = direct ? 0 : grow(fetcher, location->length);
        if (rc < 0)
            return rc;
        rc = weir_read(fetcher->reader, location->file, location->offset, location->length,
                       direct ? into : fetcher->buffer, &data);
        if (rc < 0) {
            snprintf(fetcher->reason, sizeof fetcher->reason, "%s", weir_read_reason(rc));
            return rc;
        }
        const char *why = "";
        rc = weir_unwrap(fetcher->dataset, location, data, &why);
        if (rc < 0)
            snprintf(fetcher->reason, sizeof fetcher->reason, "%s", why);
        if (rc == 1)
            continue;
        *bytes = data + location->payload;
        *length = location->payload_length;
        return rc;
    }
}

int weir_fetch_frame(struct weir_fetcher *fetcher, int episode, int camera, int t, void *into, size_t into_bytes,
                     const uint8_t **bytes, size_t *length)
{
    struct weir_location location;
    int how = weir_locate(fetcher->dataset, episode, camera, t, &location);
    if (how == WEIR_HOW_LIBRARY)
        return through_library(fetcher, episode, camera, t, bytes, length);
    if (how == WEIR_HOW_EXTENT)
        return by_extent(fetcher, &location, into, into_bytes, bytes, length);
    weir_frame_reason(fetcher->dataset, episode, camera, t, fetcher->reason, sizeof fetcher->reason);
    return how;
}
