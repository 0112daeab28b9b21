/* report_priv.h: what the tables of both languages share. */
#ifndef WEIR_PROF_REPORT_REPORT_PRIV_H
#define WEIR_PROF_REPORT_REPORT_PRIV_H

#include "prof/report/report.h"

/* The first errors kept, a line each ("  COUNT" times TEXT), and how many more there were (more COUNT more_end). */
void weir_report_errors(FILE *out, const struct weir_report *report, const char *times, const char *more,
                        const char *more_end);

/* The threads' lines. Fill returns 0 or -ENOMEM. */
int weir_report_fill_threads(struct weir_report *report, const struct weir_snapshot *snapshot);
void weir_report_threads_en(FILE *out, const struct weir_report *report);
void weir_report_threads_zh(FILE *out, const struct weir_report *report);
void weir_report_threads_json(struct weir_json *json, const struct weir_report *report);

/* Of the pixels stored, those that were decoded. */
double weir_report_decoded_percent(const struct weir_report *report);

/* Bytes unpacked for each byte of the frames, bytes read for each stored byte of theirs, frames for each unpacking. */
double weir_chunks_unpacked(const struct weir_chunk_counts *counts);
double weir_chunks_read(const struct weir_chunk_counts *counts);
double weir_chunks_shared(const struct weir_chunk_counts *counts);

/* The part of all look-ups that hit, 0..1. */
double weir_report_hit_rate(const struct weir_report_cache *cache);

/* A row of what was timed. */
void weir_report_row_fill(struct weir_report_row *row, const struct weir_stage_info *info,
                          const struct weir_stage_stats *stats);
void weir_report_row_json(struct weir_json *json, const struct weir_report_row *row);

/* A number, or null for -1: "not known", "does not apply". */
void weir_report_known(struct weir_json *json, const char *key, double value);

/* "12.3us": one word, so that awk and sort can take a table apart. */
const char *weir_report_time(char text[24], double seconds);

/* Which camera, which file. */
void weir_report_sources_en(FILE *out, const struct weir_report *report);
void weir_report_sources_json(struct weir_json *json, const struct weir_report_sources *sources);

/* What the GPU did beside its rows; nothing without one. */
void weir_report_gpu_en(FILE *out, const struct weir_report_gpu *gpu);
void weir_report_gpu_zh(FILE *out, const struct weir_report_gpu *gpu, bool timing);
void weir_report_gpu_json(struct weir_json *json, const struct weir_report_gpu *gpu);
void weir_report_epoch_gpu_en(FILE *out, const struct weir_epoch_line *line);
void weir_report_epoch_gpu_zh(FILE *out, const struct weir_epoch_line *line);

#endif
