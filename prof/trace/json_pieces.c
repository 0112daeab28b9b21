#include "prof/trace/trace_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, BLOCK = 1 << 16 };

int weir_pieces_open(struct weir_pieces *p, struct weir_gz_reader *reader, const char *array)
{
    *p = (struct weir_pieces){.reader = reader, .array = array, .capacity_ = 2 * BLOCK};
    p->buffer_ = malloc(p->capacity_);
    return p->buffer_ ? 0 : -ENOMEM;
}

void weir_pieces_close(struct weir_pieces *p)
{
    free(p->buffer_);
    p->buffer_ = NULL;
}

static int fail(const struct weir_pieces *p, struct weir_err *err, int code, const char *what)
{
    return weir_err_set(err, code, "at byte %" PRIu64 ": %s", p->read_ - (p->filled_ - p->at_), what);
}

/* Reads more of the file into the buffer, dropping the bytes before *keep. Returns 1, 0 at the end of the file, or a
 * negative error code. */
static int more(struct weir_pieces *p, size_t *keep, struct weir_err *err)
{
    memmove(p->buffer_, p->buffer_ + *keep, p->filled_ - *keep);
    p->at_ -= *keep;
    p->filled_ -= *keep;
    *keep = 0;
    if (p->capacity_ - p->filled_ < BLOCK) {
        char *moved = p->capacity_ < 2 * WEIR_PIECE_MAX_BYTES ? realloc(p->buffer_, 2 * p->capacity_) : NULL;
        if (!moved)
            return fail(p, err, -E2BIG, "an element is larger than 16 MiB; no event of a trace is that large");
        p->buffer_ = moved;
        p->capacity_ *= 2;
    }
    ssize_t n = weir_gz_read(p->reader, p->buffer_ + p->filled_, BLOCK - 1);
    if (n == -EBADMSG)
        return fail(p, err, -EBADMSG, "the compressed data is damaged or truncated");
    if (n == -EFBIG)
        return fail(p, err, -EFBIG, "it decompresses to over 256 times its size, as no trace does");
    if (n < 0)
        return fail(p, err, (int)n, strerror((int)-n));
    p->filled_ += (size_t)n;
    p->read_ += (uint64_t)n;
    return n > 0;
}

/* Returns the next character that is not white space, without consuming it; '\0' at the end of the file, negative on
 * errors. */
static int peek(struct weir_pieces *p, struct weir_err *err)
{
    for (;;) {
        while (p->at_ < p->filled_ && strchr(" \t\r\n", p->buffer_[p->at_]) && p->buffer_[p->at_])
            p->at_++;
        if (p->at_ < p->filled_)
            return (unsigned char)p->buffer_[p->at_];
        size_t keep = p->at_;
        int rc = more(p, &keep, err);
        if (rc <= 0)
            return rc;
    }
}

/* Skips the value that begins at the current position. Sets *from and *length to its place in the buffer. */
static int skip_value(struct weir_pieces *p, size_t *from, size_t *length, struct weir_err *err)
{
    int depth = 0;
    bool quoted = false, escaped = false;
    *from = p->at_;
    for (;; p->at_++) {
        if (p->at_ == p->filled_) {
            int rc = more(p, from, err);
            if (rc < 0)
                return rc;
            if (rc == 0)
                return fail(p, err, -EBADMSG,
                            "the file is truncated here; record the trace again or get the complete file");
        }
        char c = p->buffer_[p->at_];
        if (quoted) {
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            if (!quoted && depth == 0)
                break;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX)
                return fail(p, err, -EBADMSG, "values are nested more than 64 levels deep, deeper than in any trace");
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                goto before; /* closes the object or array that contains this unquoted value */
            if (--depth == 0)
                break;
        } else if (depth == 0 && strchr(", \t\r\n", c) && c) {
            goto before;
        }
    }
    p->at_++;
before:
    *length = p->at_ - *from;
    return *length ? 1 : fail(p, err, -EBADMSG, "a value was expected here");
}

/* Reads a member's name and the colon after it. */
static int take_key(struct weir_pieces *p, struct weir_err *err)
{
    size_t from, length;
    int c = peek(p, err);
    if (c != '"')
        return c < 0 ? c : fail(p, err, -EBADMSG, "a member's name was expected here");
    int rc = skip_value(p, &from, &length, err);
    if (rc < 0)
        return rc;
    length = length >= 2 ? length - 2 : 0;
    size_t n = length < sizeof p->key ? length : sizeof p->key - 1;
    memcpy(p->key, p->buffer_ + from + 1, n);
    p->key[n] = '\0';
    c = peek(p, err);
    if (c != ':')
        return c < 0 ? c : fail(p, err, -EBADMSG, "':' was expected here");
    p->at_++;
    return 1;
}

static int give(struct weir_pieces *p, struct weir_err *err)
{
    size_t from, length;
    int c = peek(p, err);
    if (c <= 0)
        return c < 0 ? c
                     : fail(p, err, -EBADMSG,
                            "the file is truncated here; record the trace again or get the complete file");
    int rc = skip_value(p, &from, &length, err);
    if (rc < 0)
        return rc;
    p->piece = p->buffer_ + from;
    p->length = length;
    p->offset = p->read_ - (p->filled_ - from);
    return 1;
}

/* Skips the comma between elements. Returns 1 if another element follows, 0 after consuming the closing character
 * `end`. */
static int separate(struct weir_pieces *p, char end, struct weir_err *err)
{
    int c = peek(p, err);
    if (c < 0)
        return c;
    if (c == ',') {
        p->at_++;
        c = peek(p, err);
        if (c < 0 || c != end)
            return c < 0 ? c : 1;
    }
    if (c == end) {
        p->at_++;
        return 0;
    }
    if (c == 0)
        return fail(p, err, -EBADMSG, "the file is truncated here; record the trace again or get the complete file");
    return p->begun ? fail(p, err, -EBADMSG, "',' or the closing bracket was expected here") : 1;
}

static int begin(struct weir_pieces *p, struct weir_err *err)
{
    int c = peek(p, err);
    if (c < 0)
        return c;
    if (c != '{' && c != '[')
        return fail(p, err, -EBADMSG, "not a trace: the file must begin with an object or an array of events");
    p->at_++;
    p->in_array = c == '[';
    p->ended_ = false;
    if (p->in_array)
        snprintf(p->key, sizeof p->key, "%s", p->array);
    return 1;
}

int weir_pieces_next(struct weir_pieces *p, struct weir_err *err)
{
    int rc = 1;
    if (p->ended_)
        return 0;
    bool bare = !p->begun && (rc = begin(p, err)) == 1 && p->in_array;
    if (rc < 0)
        return rc;
    p->bare_ |= bare;
    for (;;) {
        rc = separate(p, p->in_array ? ']' : '}', err);
        p->begun = true;
        if (rc < 0)
            return rc;
        if (rc == 0 && (!p->in_array || p->bare_)) {
            p->ended_ = true;
            return 0;
        }
        if (rc == 0) {
            p->in_array = false;
            continue;
        }
        if (p->in_array)
            return give(p, err);
        rc = take_key(p, err);
        if (rc < 0)
            return rc;
        if (strcmp(p->key, p->array) != 0 || peek(p, err) != '[')
            return give(p, err);
        p->at_++;
        p->in_array = true;
        p->begun = false;
    }
}

/* ---- inside a piece ---- */

/* Returns the position after the string that begins at i. */
static size_t behind_string(const char *text, size_t length, size_t i)
{
    for (i++; i < length && text[i] != '"'; i++)
        i += text[i] == '\\';
    return i < length ? i + 1 : length;
}

/* Returns the first position at or after i that is not white space. */
static size_t behind_space(const char *text, size_t length, size_t i)
{
    while (i < length && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i;
}

size_t weir_piece_number(const char *object, size_t length, const char *key, const char **number)
{
    size_t n = strlen(key);
    int depth = 0;
    for (size_t i = 0; i < length;) {
        char c = object[i];
        if (c == '"') {
            size_t end = behind_string(object, length, i), colon = behind_space(object, length, end);
            bool same = depth == 1 && end - i == n + 2 && memcmp(object + i + 1, key, n) == 0;
            i = end;
            if (!same || colon >= length || object[colon] != ':')
                continue;
            i = behind_space(object, length, colon + 1);
            *number = object + i;
            return strspn(object + i,
                          "+-.0123456789eE"); /* stays inside the piece, because an object ends with a brace */
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        i++;
    }
    return 0;
}
