#include "base/claims.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Counts data from the front. Files with more extents are stored for the greatest part. */
enum { EXTENTS_MAX = 4096 };

uint64_t weir_stored_bytes(int fd, uint64_t offset, uint64_t n)
{
    uint64_t end = offset + n, stored = 0;
    if (end < offset || end > INT64_MAX)
        return n;
    for (int i = 0; offset < end; i++) {
        off_t data = lseek(fd, (off_t)offset, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (data < 0) /* ENXIO: only a hole follows */
            return errno == ENXIO ? stored : n;
        if (hole < 0 || i == EXTENTS_MAX)
            return n;
        if ((uint64_t)data >= end)
            break;
        stored += ((uint64_t)hole < end ? (uint64_t)hole : end) - (uint64_t)data;
        offset = (uint64_t)hole;
    }
    return stored;
}

bool weir_claim_fits_file(uint64_t bytes, int fd, uint64_t n, uint64_t *stored)
{
    if (weir_claim_fits(bytes, 0))
        return true;
    *stored = weir_stored_bytes(fd, 0, n);
    return weir_claim_fits(bytes, *stored);
}

/* Bytes of jansson's values with the allocator's own, on 64-bit machines. */
enum {
    OBJECT_BYTES = 224,
    ARRAY_BYTES = 128,
    MEMBER_BYTES = 112,
    SLOT_BYTES = 24,
    NUMBER_BYTES = 32,
    STRING_BYTES = 80
};

/* Returns the position after the string that begins at i. */
static size_t after_string(const char *text, size_t n, size_t i)
{
    for (i++; i < n && text[i] != '"'; i++)
        i += text[i] == '\\';
    return i < n ? i + 1 : n;
}

static size_t after_word(const char *text, size_t n, size_t i)
{
    while (i < n && text[i] && !strchr(" \t\r\n,:\"[]{}", text[i]))
        i++;
    return i;
}

size_t weir_json_blank(const char *text, size_t n, size_t i)
{
    while (i < n && text[i] && strchr(" \t\r\n", text[i]))
        i++;
    return i;
}

size_t weir_json_value(const char *text, size_t n)
{
    size_t depth = 0;
    for (size_t i = 0; i < n;) {
        char c = text[i];
        size_t end = c == '"' ? after_string(text, n, i) : after_word(text, n, i);
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        if (depth == 0 && !opens)
            return end;
        i = end > i ? end : i + 1;
        depth += opens;
        depth -= closes;
        if (depth == 0)
            return i;
    }
    return n;
}

int weir_json_claim(const char *text, size_t n, size_t *longest, struct weir_err *err)
{
    uint64_t tree = 0;
    size_t most = 0;
    for (size_t i = 0; i < n;) {
        char c = text[i];
        size_t end = c == '"' ? after_string(text, n, i) : after_word(text, n, i);
        size_t token = end - i;
        if (token > 0)
            tree += c == '"' ? STRING_BYTES + token : NUMBER_BYTES;
        else
            tree += c == '{'   ? OBJECT_BYTES
                    : c == '[' ? ARRAY_BYTES
                    : c == ',' ? SLOT_BYTES
                    : c == ':' ? MEMBER_BYTES
                               : 0;
        most = token > most ? token : most;
        i = token > 0 ? end : i + 1;
    }
    if (longest)
        *longest = most;
    if (tree <= WEIR_CLAIM_SPARE || (tree - WEIR_CLAIM_SPARE) / WEIR_JSON_RATIO <= n)
        return 0;
    return weir_err_set(err, -E2BIG,
                        "its %zu bytes of JSON are so many small values that they would take %llu MiB of memory", n,
                        (unsigned long long)tree >> 20);
}
