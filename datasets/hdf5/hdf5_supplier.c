#include "base/shortage.h"
#include "datasets/hdf5/hdf5_helper_protocol_priv.h"
#include "datasets/helper/helper_spawner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A damaged file can make the library read without end. */
enum { READS_OF_FILE = 8 };
static const uint64_t SPARE_BYTES = (uint64_t)64 << 20;

static bool is_open(const struct weir_hdf5_supplier *s, const char *path, const struct weir_file_id *id)
{
    return s->source && strcmp(s->file.path, path) == 0 && s->file.inode == id->inode &&
           s->file.size_bytes == id->size_bytes && s->file.mtime_ns == id->mtime_ns;
}

static void close_file(struct weir_hdf5_supplier *s)
{
    weir_source_close(&s->source);
    free((char *)s->file.path);
    s->file = (struct weir_dataset_file){0};
}

int weir_hdf5_supplier_begin(struct weir_hdf5_supplier *s, const char *path, struct weir_dataset_file *file,
                             struct weir_err *err)
{
    struct weir_file_id id;
    s->sent_bytes = 0;
    s->err = WEIR_ERR_NONE;
    int rc = s->origin->ops->identify(s->origin, path, &id, err);
    if (rc < 0)
        return rc;
    if (!s->buffer)
        s->buffer = malloc(WEIR_HELPER_RANGE_MAX);
    if (!s->buffer)
        return weir_no_memory(err);
    if (!is_open(s, path, &id)) {
        close_file(s);
        s->file = (struct weir_dataset_file){strdup(path), id.size_bytes, id.device, id.inode, id.mtime_ns, false};
        rc = s->file.path ? weir_source_open(&s->source, s->origin, path, &id, err) : weir_no_memory(err);
    }
    if (rc < 0)
        close_file(s);
    *file = s->file;
    file->path = NULL;
    return rc;
}

static int read_range(struct weir_hdf5_supplier *s, const struct weir_helper_reply *wants)
{
    bool inside = wants->length > 0 && wants->length <= WEIR_HELPER_RANGE_MAX && wants->offset <= s->file.size_bytes &&
                  wants->length <= s->file.size_bytes - wants->offset;
    uint64_t most =
        s->file.size_bytes < UINT64_MAX / 16 ? READS_OF_FILE * s->file.size_bytes + SPARE_BYTES : UINT64_MAX;
    s->sent_bytes += inside ? wants->length : 0;
    if (!inside || s->sent_bytes > most)
        return weir_err_set(&s->err, -EBADMSG,
                            "the HDF5 library reads too much of the file; repair or remove the file");
    int rc = weir_source_read(s->source, wants->offset, s->buffer, (size_t)wants->length);
    return rc < 0 ? weir_err_set(&s->err, rc, "%s", weir_source_reason(s->source, rc)) : 0;
}

bool weir_hdf5_supplier_send(struct weir_hdf5_supplier *s, int fd, const struct weir_helper_reply *wants)
{
    const struct weir_helper_supply supply = {.rc = read_range(s, wants)};
    return weir_helper_send(fd, &supply, sizeof supply) &&
           (supply.rc < 0 || weir_helper_send(fd, s->buffer, (size_t)wants->length));
}

void weir_hdf5_supplier_close(struct weir_hdf5_supplier *s)
{
    close_file(s);
    free(s->buffer);
    s->buffer = NULL;
}
