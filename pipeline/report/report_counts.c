/* Shares and errors that the tables of both languages and the log have in common. */
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

void weir_report_errors(FILE *out, const struct weir_loader_report *report, const char *times, const char *more,
                        const char *more_end)
{
    uint64_t shown = 0, all = report->bad_frames + report->bad_episodes + report->changed_files;
    for (int i = 0; i < report->n_errors && i < ERRORS_SHOWN; i++) {
        char text[sizeof report->errors[i].text];
        snprintf(text, sizeof text, "%s", report->errors[i].text);
        weir_text_printable(text);
        fprintf(out, "  %" PRIu64 "%s%s\n", report->errors[i].count, times, text);
        shown += report->errors[i].count;
    }
    if (report->n_errors > 0 && all > shown)
        fprintf(out, "  %s%" PRIu64 "%s\n", more, all - shown, more_end);
}
