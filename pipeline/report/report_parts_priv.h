/* report_parts_priv.h: the parts of a loader's report, and what both languages and the log share. */
#ifndef WEIR_PIPELINE_REPORT_REPORT_PARTS_PRIV_H
#define WEIR_PIPELINE_REPORT_REPORT_PARTS_PRIV_H

#include "weir/report.h"

/* The first errors kept, one line for those of a file that differ in the frame alone, and how many more there were. */
void weir_report_errors(FILE *out, const struct weir_loader_report *report, enum weir_lang lang);

/* Of the pixels stored, those that were decoded. */
double weir_report_decoded_percent(const struct weir_loader_report *report);

/* Bytes unpacked for each byte of the frames, bytes read for each stored byte of theirs, frames for each unpacking. */
double weir_chunks_unpacked(const struct weir_chunk_counts *counts);
double weir_chunks_read(const struct weir_chunk_counts *counts);
double weir_chunks_shared(const struct weir_chunk_counts *counts);

/* The part of all look-ups that hit, 0..1. */
double weir_report_hit_rate(const struct weir_report_cache *cache);

/* The whole report. */
void weir_report_tables_zh(FILE *out, const struct weir_loader_report *report);

/* Which camera, which file. */
void weir_report_sources_en(FILE *out, const struct weir_loader_report *report);
void weir_report_sources_json(struct weir_json *json, const struct weir_report_sources *sources);

/* weir_loader_report_log, with what a program adds (may be NULL). */
void weir_report_line(FILE *log, const struct weir_loader_report *report, const struct weir_report_addition *addition);

/* Steps, the setup, and what was waited for. */
void weir_report_steps_json(struct weir_json *json, const struct weir_loader_report *report);

/* What the GPU did beside its rows; nothing without one. */
void weir_report_gpu_en(FILE *out, const struct weir_report_gpu *gpu);
void weir_report_gpu_zh(FILE *out, const struct weir_report_gpu *gpu, bool timing);
void weir_report_gpu_json(struct weir_json *json, const struct weir_report_gpu *gpu);

#endif
