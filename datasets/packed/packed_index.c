#include "base/claims.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortage.h"
#include "datasets/index.h"
#include "datasets/packed/packed_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READ_AHEAD_RECORDS = 64, AHEAD_MAX = 8 << 20, INDEX_PIECE = 65536 /* entries per read */ };

int weir_packed_read(const struct weir_packed_index *file, uint64_t offset, void *buffer, size_t n,
                     struct weir_err *err)
{
    int rc = weir_source_read(file->source, offset, buffer, n);
    if (rc == -ENODATA)
        return weir_err_set(err, rc, "ends too early, before byte %llu; copy it again",
                            (unsigned long long)(offset + n));
    return rc < 0 ? weir_err_set(err, rc, "%s", weir_source_reason(file->source, rc)) : 0;
}

static int read_header(struct weir_packed_index *file, uint64_t file_bytes, struct weir_err *err)
{
    uint8_t bytes[WEIR_PACKED_HEADER];
    if (file_bytes < sizeof bytes)
        return weir_err_set(err, -ENODATA,
                            "has only %llu bytes (a packed file has at least %zu); copy or convert it again",
                            (unsigned long long)file_bytes, sizeof bytes);
    int rc = weir_packed_read(file, 0, bytes, sizeof bytes, err);
    rc = rc < 0 ? rc : weir_packed_get_header(&file->header, bytes, err);
    if (rc < 0)
        return rc;
    const struct weir_packed_header *header = &file->header;
    if (header->index_offset == 0)
        return weir_err_set(err, -ENODATA, "unfinished; run weir convert again");
    if (header->file_bytes != file_bytes)
        return weir_err_set(err, -ENODATA, "has %llu bytes, but was written with %llu; copy it again",
                            (unsigned long long)file_bytes, (unsigned long long)header->file_bytes);
    if (header->index_offset < WEIR_PACKED_HEADER || header->index_offset > file_bytes ||
        (uint64_t)header->n_episodes * WEIR_PACKED_INDEX_ENTRY != file_bytes - header->index_offset)
        return weir_err_set(err, -EBADMSG, "its index does not fit into the file; convert the dataset again");
    return 0;
}

static void entry(const struct weir_packed_index *file, uint32_t i, uint64_t *offset, uint64_t *bytes)
{
    *offset = weir_le(file->index + (size_t)i * WEIR_PACKED_INDEX_ENTRY, 8);
    *bytes = weir_le(file->index + (size_t)i * WEIR_PACKED_INDEX_ENTRY + 8, 8);
}

/* Checks that records do not overlap, so that reading all of them reads no more bytes than the file has. *end: end of
 * the last record; *all: bytes of all records. */
static int check_entries(const struct weir_packed_index *file, uint32_t first, uint32_t n, uint64_t *end, uint64_t *all,
                         struct weir_err *err)
{
    for (uint32_t i = first; i < first + n; i++) {
        uint64_t offset, bytes;
        entry(file, i, &offset, &bytes);
        if (offset < *end || offset > file->header.index_offset || bytes > file->header.index_offset - offset)
            return weir_err_set(err, -EBADMSG,
                                "its index lists episode %u at an impossible offset; convert the dataset again", i);
        *end = offset + bytes;
        *all += bytes;
    }
    return 0;
}

/* Reads and checks the index in pieces, so that memory grows only with entries that exist. */
static int read_index(struct weir_packed_index *file, struct weir_err *err)
{
    uint64_t end = WEIR_PACKED_HEADER, all = 0;
    uint32_t crc = 0, n = file->header.n_episodes, piece;
    int rc = 0;
    for (uint32_t first = 0; first < n && rc == 0; first += piece) {
        piece = first < INDEX_PIECE ? INDEX_PIECE : first;
        piece = piece < n - first ? piece : n - first;
        uint8_t *more = realloc(file->index, ((size_t)first + piece) * WEIR_PACKED_INDEX_ENTRY);
        if (!more)
            return weir_no_memory(err);
        file->index = more;
        uint8_t *to = more + (size_t)first * WEIR_PACKED_INDEX_ENTRY;
        size_t bytes = (size_t)piece * WEIR_PACKED_INDEX_ENTRY;
        rc = weir_packed_read(file, file->header.index_offset + (size_t)(to - more), to, bytes, err);
        crc = rc < 0 ? 0 : weir_crc32c(crc, to, bytes);
        if (rc == 0 && first + piece == n && crc != file->header.index_crc)
            rc = weir_err_set(err, -EBADMSG,
                              "the checksum of its index is wrong: the file is damaged; convert the dataset "
                              "again");
        if (rc == 0)
            rc = check_entries(file, first, piece, &end, &all, err);
    }
    if (rc == 0 && !weir_claim_fits(2 * all, 0) && /* read, and copied */
        !weir_claim_fits(2 * all, weir_source_stored(file->source, file->header.file_bytes)))
        rc = weir_err_set(
            err, -EBADMSG,
            "its records have %llu MiB, but most of the file is a hole: it was not copied completely; copy "
            "it again",
            (unsigned long long)all >> 20);
    return rc;
}

/* Announces the records of episode i and the next ones, so that remote storage can read several of them at once. */
static void announce(struct weir_packed_index *file, uint32_t i)
{
    struct weir_origin_range ranges[READ_AHEAD_RECORDS];
    uint32_t n = file->header.n_episodes - i;
    if (i < file->announced && i + 2 * READ_AHEAD_RECORDS > file->announced)
        return;
    n = n < READ_AHEAD_RECORDS ? n : READ_AHEAD_RECORDS;
    for (uint32_t j = 0; j < n; j++) {
        uint64_t bytes;
        entry(file, i + j, &ranges[j].offset, &bytes);
        ranges[j].length = (size_t)(bytes < AHEAD_MAX ? bytes : AHEAD_MAX);
    }
    weir_source_announce(file->source, ranges, (int)n);
    file->announced = weir_source_is_remote(file->source) ? i + n : i + (n + 1) / 2; /* local files: half in advance */
}

int weir_packed_read_record(struct weir_packed_index *file, uint32_t i, struct weir_packed_record *record,
                            struct weir_err *err)
{
    uint64_t offset, bytes;
    uint8_t head[WEIR_PACKED_RECORD_MIN] = {0};
    announce(file, i);
    entry(file, i, &offset, &bytes);
    int rc = bytes < sizeof head ? 0 : weir_packed_read(file, offset, head, sizeof head, err);
    rc = rc < 0 ? rc : weir_packed_get_head(record, &file->header, head, bytes, offset, err);
    if (rc < 0)
        return rc;
    if (bytes > file->record_capacity) {
        free(file->record);
        file->record = malloc((size_t)bytes);
        file->record_capacity = file->record ? bytes : 0;
    }
    if (!file->record)
        return weir_no_memory(err);
    rc = weir_packed_read(file, offset, file->record, (size_t)bytes, err);
    rc = rc < 0 ? rc : weir_packed_get_record(record, &file->header, file->record, bytes, offset, err);
    if (rc == 0 && record->number != i)
        rc = weir_err_set(err, -EBADMSG,
                          "its index lists episode %u at the offset of episode %u; convert the dataset again", i,
                          record->number);
    return rc;
}

int weir_packed_open(struct weir_packed_index *file, struct weir_origin *origin, const struct weir_dataset_file *of,
                     struct weir_err *err)
{
    *file = (struct weir_packed_index){0};
    int rc = weir_file_source(&file->source, origin, of, err);
    if (rc < 0)
        return rc;
    rc = read_header(file, of->size_bytes, err);
    if (rc == 0 && (file->header.n_episodes == 0 || file->header.n_episodes > INT32_MAX - 1))
        rc = weir_err_set(err, -EBADMSG, "has no episodes; remove the file");
    if (rc == 0)
        rc = read_index(file, err);
    if (rc < 0)
        weir_packed_close(file);
    return rc;
}

void weir_packed_close(struct weir_packed_index *file)
{
    free(file->index);
    free(file->record);
    weir_source_close(&file->source);
    *file = (struct weir_packed_index){0};
}
