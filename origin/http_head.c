#include "origin/http_head.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { RETRY_AFTER_MAX_S = 86400 }; /* longer ones count as this */

static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* Returns the number that n digits at text represent, or -1. */
static int digits_at(const char *text, int n)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

int64_t weir_client_date(const char *text)
{
    enum { LENGTH = 29, YEAR = 12 };
    if (strlen(text) != LENGTH || strcmp(text + LENGTH - 4, " GMT") != 0 || text[19] != ':' || text[22] != ':')
        return 0;
    struct tm tm = {.tm_mday = digits_at(text + 5, 2), .tm_mon = -1, .tm_year = digits_at(text + YEAR, 4) - 1900};
    tm.tm_hour = digits_at(text + 17, 2);
    tm.tm_min = digits_at(text + 20, 2);
    tm.tm_sec = digits_at(text + 23, 2);
    for (int month = 0; month < 12; month++)
        if (memcmp(text + 8, months + 3 * month, 3) == 0)
            tm.tm_mon = month;
    if (tm.tm_mday < 1 || tm.tm_mon < 0 || tm.tm_year < 70 || tm.tm_hour < 0 || tm.tm_min < 0 || tm.tm_sec < 0)
        return 0;
    time_t seconds = timegm(&tm);
    return seconds > 0 && seconds <= INT64_MAX / 1000000000 ? (int64_t)seconds : 0; /* in ns it has 64 bits */
}

void weir_client_date_text(int64_t seconds, char text[WEIR_CLIENT_DATE])
{
    struct tm tm;
    time_t t = (time_t)seconds;
    if (!gmtime_r(&t, &tm) || tm.tm_year > 8099)
        memset(&tm, 0, sizeof tm);
    snprintf(text, WEIR_CLIENT_DATE, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * (tm.tm_wday % 7),
             tm.tm_mday % 100, months + 3 * (tm.tm_mon % 12), (tm.tm_year + 1900) % 10000, tm.tm_hour % 100,
             tm.tm_min % 100, tm.tm_sec % 100);
}

bool weir_etag_is_strong(const char *etag)
{
    return etag[0] == '"';
}

bool weir_header_is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

/* Parses a number that ends at `end`. Returns false for an empty, malformed or too large one. */
static bool number(const char *text, const char *end, uint64_t *value)
{
    *value = 0;
    for (const char *at = text; at < end; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
            return false;
    return end > text;
}

static void take_length(struct weir_client_head *head, const char *value, const char *end)
{
    uint64_t length = 0;
    head->bad |= !number(value, end, &length) || length > INT64_MAX || (head->has_length && length != head->length);
    head->length = length;
    head->has_length = true;
}

/* "bytes FIRST-LAST/TOTAL", "bytes FIRST-LAST/ *" without the space, or "bytes * /TOTAL" likewise (status 416). */
static void take_range(struct weir_client_head *head, const char *value, const char *end)
{
    const char *slash = memchr(value, '/', (size_t)(end - value));
    if (head->has_range || !slash || end - value < 6 || strncasecmp(value, "bytes ", 6) != 0) {
        head->bad = true;
        return;
    }
    value += 6;
    bool any = slash + 2 == end && slash[1] == '*';
    head->has_total = !any && number(slash + 1, end, &head->total);
    head->bad |= !any && (!head->has_total || head->total > INT64_MAX);
    if (value + 1 == slash && *value == '*')
        return;
    const char *dash = memchr(value, '-', (size_t)(slash - value));
    head->has_range = dash && number(value, dash, &head->first) && number(dash + 1, slash, &head->last);
    head->bad |= !head->has_range || head->last < head->first || (head->has_total && head->last >= head->total);
}

static void copy(char *to, size_t size, const char *value, const char *end)
{
    size_t n = (size_t)(end - value);
    n = n < size ? n : 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)value[i] < 0x20 || (unsigned char)value[i] >= 0x7f)
            n = 0;
    memcpy(to, value, n);
    to[n] = '\0';
}

static void take_etag(struct weir_client_head *head, const char *value, const char *end)
{
    size_t skip = end - value > 2 && value[0] == 'W' && value[1] == '/' ? 2 : 0;
    bool quoted = (size_t)(end - value) >= skip + 2 && value[skip] == '"' && end[-1] == '"';
    copy(head->etag, sizeof head->etag, value, quoted ? end : value);
}

static void take_header(struct weir_client_head *head, const char *name, size_t n, const char *value, const char *end)
{
    char text[64];
    copy(text, sizeof text, value, end);
#define IS(s) (n == sizeof(s) - 1 && strncasecmp(name, s, sizeof(s) - 1) == 0)
    if (IS("content-length")) {
        take_length(head, value, end);
    } else if (IS("content-range")) {
        take_range(head, value, end);
    } else if (IS("etag")) {
        take_etag(head, value, end);
    } else if (IS("last-modified")) {
        head->modified_s = weir_client_date(text);
    } else if (IS("date")) {
        head->date_s = weir_client_date(text);
    } else if (IS("retry-after")) {
        char *stop;
        unsigned long long seconds = strtoull(text, &stop, 10); /* a date counts as none */
        bool is_number = text[0] >= '0' && text[0] <= '9' && !*stop;
        head->retry_after_s = !is_number ? 0 : seconds < RETRY_AFTER_MAX_S ? (uint32_t)seconds : RETRY_AFTER_MAX_S;
    } else if (IS("content-encoding")) {
        head->is_encoded |= end > value && strcasecmp(text, "identity") != 0;
    } else if (IS("x-amz-bucket-region")) {
        copy(head->region, sizeof head->region, value, end);
    } else if (IS("content-type")) {
        const char *stop = memchr(value, ';', (size_t)(end - value));
        copy(head->type, sizeof head->type, value, stop ? stop : end);
    }
#undef IS
}

static void begin(struct weir_client_head *head, const char *line, const char *end)
{
    size_t bytes = head->bytes;
    const char *space = memchr(line, ' ', (size_t)(end - line));
    uint64_t status = 0;
    *head = (struct weir_client_head){.bytes = bytes};
    head->bad = !space || end - space < 4 || !number(space + 1, space + 4, &status);
    head->status = (int)status;
}

bool weir_client_head_line(struct weir_client_head *head, const char *line, size_t n)
{
    if (n > WEIR_HEAD_MAX_BYTES - head->bytes)
        return false;
    head->bytes += n;
    const char *end = line + n;
    while (end > line && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (end - line > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        begin(head, line, end);
        return true;
    }
    const char *colon = memchr(line, ':', (size_t)(end - line));
    if (!colon)
        return true;
    const char *value = colon + 1;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    take_header(head, line, (size_t)(colon - line), value, end);
    return true;
}

/* ---- comparing ---- */

static int changed(const struct weir_client_head *head, const struct weir_remote_facts *file, struct weir_err *err)
{
    if (head->status == 412)
        return weir_err_set(err, -ESTALE, "the file changed since it was opened; rerun to index it again");
    if (!file)
        return 0;
    if (head->has_total && head->total != file->size_bytes)
        return weir_err_set(err, -ESTALE, "the file now has %llu bytes (indexed: %llu); rerun to index it again",
                            (unsigned long long)head->total, (unsigned long long)file->size_bytes);
    bool etags = *head->etag && *file->etag;
    bool times = !etags && head->modified_s && file->modified_s;
    if (etags && strcmp(head->etag, file->etag) != 0 && head->modified_s && head->modified_s == file->modified_s &&
        head->has_total)
        return weir_err_set(
            err, -ESTALE,
            "the file has another ETag than before at the same size and time; if it did not change, let "
            "all machines behind the server state the same ETag");
    if ((etags && strcmp(head->etag, file->etag) != 0) || (times && head->modified_s != file->modified_s))
        return weir_err_set(err, -ESTALE, "the file changed since it was opened (%s); rerun to index it again",
                            etags ? "another ETag" : "another time");
    return 0;
}

static int check_partial(const struct weir_client_head *head, const struct weir_client_wanted *wanted, uint64_t *body,
                         struct weir_err *err)
{
    bool right = head->has_range && wanted->length > 0 && head->first == wanted->offset &&
                 head->last - head->first == wanted->length - 1;
    if (!right)
        return weir_err_set(err, -EREMOTEIO,
                            "the server sends other bytes than the requested range; " WEIR_SERVER_ADVICE);
    bool is_same = !wanted->file || head->has_total || (*head->etag && *wanted->file->etag); /* by changed() */
    if (!is_same)
        return weir_err_set(err, -EREMOTEIO,
                            "the server states neither the file's size nor its ETag with a range; " WEIR_SERVER_ADVICE);
    *body = wanted->length;
    if (head->has_length && head->length != wanted->length)
        return weir_err_set(err, -EREMOTEIO,
                            "the server's Content-Length disagrees with its Content-Range; " WEIR_SERVER_ADVICE);
    return 0;
}

static int check_whole(const struct weir_client_head *head, const struct weir_client_wanted *wanted, uint64_t *body,
                       struct weir_err *err)
{
    *body = head->has_length ? head->length : UINT64_MAX;
    if (wanted->length == 0 && head->has_length && head->length > wanted->limit)
        return weir_err_set(err, -EFBIG,
                            "the response has %llu bytes; at most %zu are read; name files or smaller folders",
                            (unsigned long long)head->length, wanted->limit);
    if (wanted->length == 0)
        return 0;
    bool all = wanted->offset == 0 && wanted->file && wanted->file->size_bytes == wanted->length;
    if (!all)
        return weir_err_set(err, -EREMOTEIO, "the server ignores ranges and sends the whole file; " WEIR_SERVER_ADVICE);
    if (head->has_length && head->length != wanted->length)
        return weir_err_set(err, -ESTALE, "the file changed its size since it was opened; rerun to index it again");
    *body = wanted->length;
    return 0;
}

int weir_client_head_check(const struct weir_client_head *head, const struct weir_client_wanted *wanted, uint64_t *body,
                           struct weir_err *err)
{
    *body = 0;
    if (head->bad)
        return weir_err_set(err, -EREMOTEIO, "the server's response has a malformed head; " WEIR_SERVER_ADVICE);
    int rc = changed(head, wanted->file, err);
    if (rc < 0)
        return rc;
    if (head->status == 416)
        return weir_err_set(err, -ESTALE, "the file is shorter than when it was opened; rerun to index it again");
    if (head->is_encoded)
        return weir_err_set(err, -EREMOTEIO,
                            "the server compresses the file, although it was requested as it is; turn that off there");
    if (wanted->is_head)
        return 0;
    if (head->status == 206)
        return check_partial(head, wanted, body, err);
    if (head->status == 200)
        return check_whole(head, wanted, body, err);
    return weir_err_set(err, -EREMOTEIO, "the server's response has the unexpected status %d; " WEIR_SERVER_ADVICE,
                        head->status);
}
