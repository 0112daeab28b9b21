#include "base/files.h"
#include "base/grow.h"
#include "base/hash.h"
#include "datasets/tfrecord/example.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 10 * 1000 * 1000 };

static int add_record(struct weir_records *records, uint64_t at, uint64_t bytes)
{
    if (!weir_grow(&records->at, (size_t)records->n, sizeof *records->at) ||
        !weir_grow(&records->bytes, (size_t)records->n, sizeof *records->bytes))
        return -ENOMEM;
    records->at[records->n] = at;
    records->bytes[records->n++] = bytes;
    return 0;
}

static int no_record(int number, uint64_t at, const char *what, struct weir_err *err)
{
    return weir_err_set(err, -EBADMSG, "record %d, at byte %llu: %s; the file is damaged or was not copied completely",
                        number, (unsigned long long)at, what);
}

int weir_records_find(struct weir_records *records, const struct weir_raw_file *source, uint64_t file_bytes,
                      struct weir_err *err)
{
    enum { HEADER = WEIR_RECORD_HEADER, FOOTER = WEIR_RECORD_FOOTER };
    uint8_t header[HEADER] = {0};
    int rc = file_bytes >= HEADER ? source->read(source->user, 0, header, HEADER) : 0;
    if (rc == 0 && header[0] == 0x1F && header[1] == 0x8B)
        return weir_err_set(
            err, -ENOTSUP,
            "it is compressed with gzip, so its frames cannot be read one by one; unpack it with gunzip");
    for (uint64_t at = 0; rc == 0 && at < file_bytes;) {
        if (file_bytes - at < HEADER + FOOTER)
            return no_record(records->n, at, "it is cut off", err);
        rc = source->read(source->user, at, header, HEADER);
        uint64_t bytes = weir_le(header, 8);
        if (rc == 0 && weir_le(header + 8, 4) != weir_crc32c_masked(header, 8))
            return no_record(records->n, at, "the checksum of its length is wrong", err);
        if (rc == 0 && bytes > file_bytes - at - HEADER - FOOTER)
            return no_record(records->n, at, "it is cut off", err);
        if (rc == 0 && records->n == RECORDS_MAX)
            return weir_err_set(err, -EFBIG, "it has more than %d records", RECORDS_MAX);
        rc = rc < 0 ? rc : add_record(records, at + HEADER, bytes);
        at += HEADER + bytes + FOOTER;
    }
    if (rc == -ENOMEM)
        return weir_err_set(err, rc, "out of memory");
    return rc < 0 ? weir_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

void weir_records_free(struct weir_records *records)
{
    free(records->at);
    free(records->bytes);
    *records = (struct weir_records){0};
}

int weir_record_is_whole(const struct weir_records *records, int i, const struct weir_raw_file *source, uint8_t *buffer)
{
    uint64_t at = records->at[i], left = records->bytes[i];
    uint32_t crc = 0;
    while (left > 0) {
        size_t n = left < WEIR_RECORD_BUFFER ? (size_t)left : WEIR_RECORD_BUFFER;
        int rc = source->read(source->user, at, buffer, n);
        if (rc < 0)
            return rc;
        crc = weir_crc32c(crc, buffer, n);
        at += n;
        left -= n;
    }
    uint8_t footer[WEIR_RECORD_FOOTER];
    int rc = source->read(source->user, at, footer, sizeof footer);
    return rc < 0 ? rc : weir_le(footer, sizeof footer) == weir_crc32c_mask(crc);
}
