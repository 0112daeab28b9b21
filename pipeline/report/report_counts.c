/* Percentages and error summaries shared by the English table, the Chinese table and the log. */
#include "base/text.h"
#include "pipeline/report/report_parts_priv.h"

#include <inttypes.h>
#include <string.h>

enum { ERRORS_SHOWN = 10 };

void weir_loader_report_clear(struct weir_loader_report *report)
{
    weir_report_free(&report->prof);
}

double weir_report_decoded_percent(const struct weir_loader_report *report)
{
    return 100 * (double)report->decoded_pixels / (double)(report->stored_pixels ? report->stored_pixels : 1);
}

static double times(uint64_t paid, uint64_t own)
{
    return own > 0 ? (double)paid / (double)own : 0;
}

double weir_chunks_unpacked(const struct weir_chunk_counts *counts)
{
    return times(counts->unpacked_bytes, counts->frame_bytes);
}

double weir_chunks_read(const struct weir_chunk_counts *counts)
{
    return times(counts->read_bytes, counts->stored_bytes);
}

double weir_chunks_shared(const struct weir_chunk_counts *counts)
{
    return times(counts->frames, counts->blocks);
}

double weir_report_hit_rate(const struct weir_report_cache *cache)
{
    uint64_t all = cache->hits + cache->misses;
    return all ? (double)cache->hits / (double)all : 0;
}

/* Returns the reason in "FILE: DATASET[t]: reason", or NULL if the string has another form. */
static const char *reason_of(const char *text, size_t *file_length)
{
    const char *file_end = strstr(text, ": "), *reason = strstr(text, "]: ");
    if (!file_end || !reason || reason < file_end)
        return NULL;
    *file_length = (size_t)(file_end - text);
    return reason;
}

static bool is_same_fault(const char *a, const char *b)
{
    size_t a_length, b_length;
    const char *a_reason = reason_of(a, &a_length), *b_reason = reason_of(b, &b_length);
    return a_reason && b_reason && a_length == b_length && memcmp(a, b, a_length) == 0 &&
           strcmp(a_reason, b_reason) == 0;
}

/* Adds up the errors that equal error i except for the frame. Returns 0 if an earlier error already includes error i.
 */
static uint64_t count_fault(const struct weir_loader_report *report, int i, int *frames)
{
    uint64_t count = 0;
    *frames = 0;
    for (int k = 0; k < report->n_errors; k++) {
        if (k != i && !is_same_fault(report->errors[k].text, report->errors[i].text))
            continue;
        if (k < i)
            return 0;
        count += report->errors[k].count;
        ++*frames;
    }
    return count;
}

void weir_report_errors(FILE *out, const struct weir_loader_report *report)
{
    uint64_t shown = 0, all = report->bad_frames + report->bad_episodes + report->changed_files;
    for (int i = 0, lines = 0, frames; i < report->n_errors && lines < ERRORS_SHOWN; i++) {
        char text[sizeof report->errors[i].text];
        uint64_t count = count_fault(report, i, &frames);
        if (count == 0)
            continue;
        snprintf(text, sizeof text, "%s", report->errors[i].text);
        weir_text_printable(text);
        fprintf(out, "  %" PRIu64 " x %s", count, text);
        if (frames > 1)
            fprintf(out, " (the first of %d frames)", frames);
        fputc('\n', out);
        shown += count;
        lines++;
    }
    if (report->n_errors > 0 && all > shown)
        fprintf(out, "  and %" PRIu64 " more\n", all - shown);
}
