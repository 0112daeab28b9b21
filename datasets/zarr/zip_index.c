#include "datasets/zarr/zip_index.h"
#include "base/files.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/chunks/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    HEADER_BYTES = WEIR_ZIP_HEADER_BYTES,
    COMMENT_MAX = 65535,
    ENTRY_BYTES_MAX = ENTRY_BYTES + 3 * 65535, /* an entry with the longest possible name, extra field and comment */
    WINDOW_BYTES = 1 << 20,
    NAME_MAX_BYTES = 1024, /* limit for members that are located, because no key is longer */
};
enum { END_MARK = 0x06054b50, LOCATOR_MARK = 0x07064b50, END64_MARK = 0x06064b50 };
enum { ENTRY_MARK = 0x02014b50, HEADER_MARK = 0x04034b50 };
static const uint64_t DIRECTORY_MAX = (uint64_t)4 << 30;

/* The central directory: its position, the base of its offsets, and the contents that the archive claims. */
struct directory {
    uint64_t at, bytes, entries, shift;
};

static int damaged(struct weir_err *err, const char *what)
{
    return weir_err_set(err, -EBADMSG, "not a complete zip archive: %s; was it copied completely?", what);
}

static int unreadable(struct weir_err *err, int rc)
{
    return weir_err_set(err, rc, "%s", strerror(-rc));
}

/* ---- the end of the archive ---- */

/* Finds the ZIP64 end record through the locator in front of the common end record. */
static int find_end64(const struct weir_raw_file *raw, uint64_t end, struct directory *directory, struct weir_err *err)
{
    uint8_t locator[LOCATOR_BYTES], end64[END64_BYTES];
    if (end < LOCATOR_BYTES + END64_BYTES)
        return 0;
    int rc = raw->read(raw->user, end - LOCATOR_BYTES, locator, sizeof locator);
    if (rc < 0)
        return unreadable(err, rc);
    if (weir_le(locator, 4) != LOCATOR_MARK)
        return 0;
    if (weir_le(locator + 4, 4) != 0 || weir_le(locator + 16, 4) > 1)
        return weir_err_set(err, -ENOTSUP,
                            "one part of a zip archive that has several; join the parts with `zip -s 0`");
    /* Like Python's zipfile, expects the record directly in front of the locator. The offset in the locator is wrong if
     * other data precedes the archive. */
    uint64_t at = end - LOCATOR_BYTES - END64_BYTES;
    rc = raw->read(raw->user, at, end64, sizeof end64);
    if (rc < 0)
        return unreadable(err, rc);
    if (weir_le(end64, 4) != END64_MARK)
        return damaged(err, "its ZIP64 end record is not at the expected offset");
    *directory = (struct directory){
        .at = at, .bytes = weir_le(end64 + 40, 8), .entries = weir_le(end64 + 32, 8), .shift = weir_le(end64 + 48, 8)};
    return 1;
}

/* Finds the last end record whose comment ends with the file. */
static int find_end(const struct weir_raw_file *raw, struct directory *directory, struct weir_err *err)
{
    uint64_t most = END_BYTES + COMMENT_MAX, n = raw->size_bytes < most ? raw->size_bytes : most;
    if (n < END_BYTES)
        return damaged(err, "the file is too short");
    uint8_t *tail = malloc((size_t)n);
    int rc = tail ? raw->read(raw->user, raw->size_bytes - n, tail, (size_t)n) : -ENOMEM;
    uint64_t i = n - END_BYTES + 1;
    while (rc == 0 && i > 0 &&
           (weir_le(tail + i - 1, 4) != END_MARK || i - 1 + END_BYTES + weir_le(tail + i + 19, 2) != n))
        i--;
    if (rc == 0 && i > 0) {
        const uint8_t *end = tail + i - 1;
        *directory = (struct directory){raw->size_bytes - n + i - 1, weir_le(end + 12, 4), weir_le(end + 10, 2),
                                        weir_le(end + 16, 4)};
        rc = find_end64(raw, directory->at, directory, err);
    } else {
        rc = rc < 0 ? unreadable(err, rc) : damaged(err, "it has no end record");
    }
    free(tail);
    if (rc < 0)
        return rc;
    /* The directory ends where the end record begins. If its recorded offset differs from that, other data precedes the
     * archive, and all offsets count from the end of this data. */
    if (directory->bytes > directory->at || directory->shift > directory->at - directory->bytes)
        return damaged(err, "its directory lies outside the file");
    directory->at -= directory->bytes;
    directory->shift = directory->at - directory->shift;
    return 0;
}

/* ---- the directory ---- */

/* Parses the numbers that did not fit in the entry, in the order of the entry's fields (APPNOTE.TXT 4.5.3). */
static bool read_extra(const uint8_t *extra, size_t n, uint64_t *bytes, uint64_t *unpacked, uint64_t *header)
{
    uint64_t *const wide[] = {*unpacked == UINT32_MAX ? unpacked : NULL, *bytes == UINT32_MAX ? bytes : NULL,
                              *header == UINT32_MAX ? header : NULL};
    if (!wide[0] && !wide[1] && !wide[2])
        return true;
    for (size_t at = 0; n - at >= 4;) {
        size_t length = weir_le(extra + at + 2, 2), from = at + 4, end = from + length;
        if (length > n - from)
            return false;
        for (int i = 0; i < 3 && weir_le(extra + at, 2) == 1; i++) {
            if (!wide[i])
                continue;
            if (end - from < 8)
                return false;
            *wide[i] = weir_le(extra + from, 8);
            from += 8;
        }
        if (weir_le(extra + at, 2) == 1)
            return true;
        at = end;
    }
    return false;
}

/* Parses the entry at `at`. Returns its length, or 0 if it is malformed. The member's name is lent. */
static size_t read_entry(struct weir_zip_member *member, const uint8_t *at, uint64_t left,
                         const struct directory *directory, uint64_t file_bytes)
{
    if (left < ENTRY_BYTES || weir_le(at, 4) != ENTRY_MARK)
        return 0;
    size_t name = weir_le(at + 28, 2), extra = weir_le(at + 30, 2), comment = weir_le(at + 32, 2);
    if (name + extra + comment > left - ENTRY_BYTES)
        return 0;
    uint64_t bytes = weir_le(at + 20, 4), unpacked = weir_le(at + 24, 4), header = weir_le(at + 42, 4);
    if (!read_extra(at + ENTRY_BYTES + name, extra, &bytes, &unpacked, &header))
        return 0;
    if (__builtin_add_overflow(header, directory->shift, &header) || header > directory->at ||
        bytes > directory->at - header || directory->at > file_bytes)
        return 0;
    *member = (struct weir_zip_member){.name = (const char *)at + ENTRY_BYTES,
                                       .header = header,
                                       .bytes = bytes,
                                       .unpacked = unpacked,
                                       .crc = weir_le(at + 16, 4),
                                       .method = weir_le(at + 10, 2),
                                       .flags = weir_le(at + 8, 2)};
    return ENTRY_BYTES + name + extra + comment;
}

static int by_name(const void *a, const void *b)
{
    const struct weir_zip_member *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->number > right->number) - (left->number < right->number);
}

static void keep_last_of_each(struct weir_zip *zip)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < zip->n; i++)
        if (i + 1 == zip->n || strcmp(zip->members[i].name, zip->members[i + 1].name) != 0)
            zip->members[kept++] = zip->members[i];
    zip->repeated = zip->n - kept;
    zip->n = kept;
}

/* Reserves space for n elements. The list grows with the data that was read, not with the size that the archive claims.
 */
static bool reserve(void **list, uint64_t *capacity, uint64_t n, size_t bytes)
{
    if (n <= *capacity)
        return true;
    uint64_t more = n < 1024 ? 1024 : 2 * n;
    void *grown = realloc(*list, (size_t)more * bytes);
    *list = grown ? grown : *list;
    *capacity = grown ? more : *capacity;
    return grown != NULL;
}

/* State for reading the directory. */
struct listing {
    struct weir_zip *zip;
    const struct weir_raw_file *raw;
    const struct directory *directory;
    uint8_t *window;
    size_t begin, end; /* unparsed bytes of the window */
    uint64_t read;     /* bytes of the directory read so far */
    uint64_t names;    /* bytes of all names so far */
    uint64_t room[2];  /* capacity of the lists of members and of names */
};

static int fill_window(struct listing *l)
{
    uint64_t left = l->directory->bytes - l->read;
    if (l->end - l->begin >= ENTRY_BYTES_MAX || left == 0)
        return 0;
    memmove(l->window, l->window + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
    size_t n = left < WINDOW_BYTES - l->end ? (size_t)left : WINDOW_BYTES - l->end;
    int rc = l->raw->read(l->raw->user, l->directory->at + l->read, l->window + l->end, n);
    l->end += n;
    l->read += n;
    return rc;
}

/* Adds the next entry as the last member. Its name is an offset for now, because the memory of the names may still
 * move. */
static int add_entry(struct listing *l, struct weir_err *err)
{
    struct weir_zip *zip = l->zip;
    struct weir_zip_member member;
    int rc = fill_window(l);
    if (rc < 0)
        return unreadable(err, rc);
    const uint8_t *at = l->window + l->begin;
    size_t n = read_entry(&member, at, l->end - l->begin, l->directory, l->raw->size_bytes);
    if (n == 0)
        return damaged(err, "an entry of its directory is invalid");
    size_t length = weir_le(at + 28, 2);
    if (memchr(member.name, '\0', length))
        return damaged(err, "the name of a member contains a zero byte");
    if (!reserve((void **)&zip->members, &l->room[0], (uint64_t)zip->n + 1, sizeof *zip->members) ||
        !reserve((void **)&zip->names, &l->room[1], l->names + length + 1, 1))
        return weir_err_set(err, -ENOMEM, "out of memory for its members");
    memcpy(zip->names + l->names, member.name, length);
    zip->names[l->names + length] = '\0';
    member.name = (const char *)(uintptr_t)l->names;
    member.number = zip->n;
    zip->members[zip->n++] = member;
    l->names += length + 1;
    l->begin += n;
    return 0;
}

static int read_directory(struct weir_zip *zip, const struct weir_raw_file *raw, const struct directory *directory,
                          struct weir_err *err)
{
    if (directory->bytes > DIRECTORY_MAX || directory->entries > directory->bytes / ENTRY_BYTES)
        return damaged(err, "the size of its directory does not fit its number of members");
    struct listing listing = {.zip = zip, .raw = raw, .directory = directory, .window = malloc(WINDOW_BYTES)};
    int rc = listing.window ? 0 : weir_no_memory(err);
    while (rc == 0 && zip->n < directory->entries)
        rc = add_entry(&listing, err);
    free(listing.window);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < zip->n; i++)
        zip->members[i].name = zip->names + (uintptr_t)zip->members[i].name;
    zip->directory = directory->at;
    if (zip->n > 0)
        qsort(zip->members, zip->n, sizeof *zip->members, by_name);
    keep_last_of_each(zip);
    return 0;
}

int weir_zip_open(struct weir_zip *zip, const struct weir_raw_file *raw, struct weir_err *err)
{
    struct directory directory = {0};
    *zip = (struct weir_zip){0};
    int rc = find_end(raw, &directory, err);
    if (rc == 0)
        rc = read_directory(zip, raw, &directory, err);
    if (rc < 0)
        weir_zip_close(zip);
    return rc;
}

void weir_zip_close(struct weir_zip *zip)
{
    free(zip->members);
    free(zip->names);
    *zip = (struct weir_zip){0};
}

uint32_t weir_zip_lower_bound(const struct weir_zip *zip, const char *name)
{
    return WEIR_FIRST(i, zip->n, strcmp(zip->members[i].name, name) >= 0);
}

const struct weir_zip_member *weir_zip_find(const struct weir_zip *zip, const char *name)
{
    uint32_t i = weir_zip_lower_bound(zip, name);
    return i < zip->n && strcmp(zip->members[i].name, name) == 0 ? &zip->members[i] : NULL;
}

static int no_header(struct weir_err *err, const struct weir_zip_member *member, const char *what)
{
    return weir_err_set(err, -EBADMSG, "%s: its header in the archive %s; was it copied completely?", member->name,
                        what);
}

int weir_zip_locate(const struct weir_raw_file *raw, const struct weir_zip_member *member, uint64_t *offset,
                    struct weir_err *err)
{
    enum { ENCRYPTED = 1 };
    uint8_t header[HEADER_BYTES + NAME_MAX_BYTES];
    size_t name = strlen(member->name);
    if (member->flags & ENCRYPTED)
        return weir_err_set(err, -ENOTSUP, "%s: is encrypted; unpack the archive", member->name);
    if (name > NAME_MAX_BYTES)
        return weir_err_set(err, -ENAMETOOLONG, "%.64s...: a name of over %d bytes; rename it", member->name,
                            NAME_MAX_BYTES);
    if (raw->size_bytes - member->header < HEADER_BYTES + name)
        return damaged(err, member->name);
    int rc = raw->read(raw->user, member->header, header, HEADER_BYTES + name);
    if (rc < 0)
        return unreadable(err, rc);
    uint64_t at = member->header + HEADER_BYTES + weir_le(header + 26, 2) + weir_le(header + 28, 2);
    if (weir_le(header, 4) != HEADER_MARK || at > raw->size_bytes || member->bytes > raw->size_bytes - at)
        return no_header(err, member, "is invalid");
    if (weir_le(header + 26, 2) != name || memcmp(header + HEADER_BYTES, member->name, name) != 0)
        return no_header(err, member, "belongs to another member");
    *offset = at;
    return 0;
}

int weir_zip_data(const struct weir_raw_file *raw, const struct weir_zip_member *member, uint64_t *offset,
                  struct weir_err *err)
{
    int rc = weir_zip_locate(raw, member, offset, err);
    if (rc < 0 || member->method == 0)
        return rc;
    return weir_err_set(err, -ENOTSUP,
                        "%s: is compressed in the archive (method %u%s), so frames cannot be read from it; "
                        "unpack the archive, or pack it again with `zip -0`",
                        member->name, member->method, member->method == 8 ? ", deflate" : "");
}
