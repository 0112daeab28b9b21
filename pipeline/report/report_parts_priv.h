/* report_parts_priv.h: parts of a loader's report, common to both languages and the log. */
#ifndef WEIR_PIPELINE_REPORT_REPORT_PARTS_PRIV_H
#define WEIR_PIPELINE_REPORT_REPORT_PARTS_PRIV_H

#include "weir/report.h"

/* Texts that --lang translates: the epoch line, and the epochs of a table. All other texts are English only. */
enum weir_text {
    WEIR_TEXT_EPOCH,
    WEIR_TEXT_INTERRUPTED,
    WEIR_TEXT_TRAIN_LOSS,
    WEIR_TEXT_VAL_LOSS,
    WEIR_TEXT_GPU_BUSY,
    WEIR_TEXT_OVERLAP,
    WEIR_TEXT_CACHED,
    WEIR_TEXT_COLD,
    WEIR_TEXT_WARM,
    WEIR_TEXT_PARTLY,
    WEIR_TEXT_DIRECT,
    WEIR_TEXT_COVERS,
    WEIR_TEXT_WHOLE_RUN,
    WEIR_TEXT_MEASURED,
    WEIR_TEXT_SINCE_TABLE,
    WEIR_TEXT_NO_EPOCH,
    WEIR_TEXT_ONE_EPOCH,
    WEIR_TEXT_EPOCHS,
    WEIR_TEXT_WALL,
    WEIR_TEXTS
};

/* Returns WEIR_TEXTS format strings. Both languages print the same values. */
const char *const *weir_report_texts(enum weir_lang lang);
const char *const *weir_report_texts_zh(void);

/* Prints the stage table in the classic Chinese format. */
void weir_report_stages_zh(FILE *out, const struct weir_loader_report *report);

/* Prints the first errors kept, merging those of a file that differ only in the frame, and the number of the others. */
void weir_report_errors(FILE *out, const struct weir_loader_report *report);

/* Returns the percentage of stored pixels that were decoded. */
double weir_report_decoded_percent(const struct weir_loader_report *report);

/* Ratios of chunk access: bytes unpacked per frame byte, bytes read per stored byte, frames per unpacking. */
double weir_chunks_unpacked(const struct weir_chunk_counts *counts);
double weir_chunks_read(const struct weir_chunk_counts *counts);
double weir_chunks_shared(const struct weir_chunk_counts *counts);

/* Returns the fraction of lookups that hit. */
double weir_report_hit_rate(const struct weir_report_cache *cache);

/* Prints the figures per camera and file. */
void weir_report_sources_print(FILE *out, const struct weir_loader_report *report);
void weir_report_sources_json(struct weir_json *json, const struct weir_report_sources *sources);

/* weir_loader_report_log with additional members of the program (may be NULL). */
void weir_report_line(FILE *log, const struct weir_loader_report *report, const struct weir_report_addition *addition);

/* Writes the steps, the configuration, and the tasks that completed late batches. */
void weir_report_steps_json(struct weir_json *json, const struct weir_loader_report *report);

/* Prints the GPU's figures below its rows; nothing without a GPU. */
void weir_report_gpu_print(FILE *out, const struct weir_report_gpu *gpu);
void weir_report_gpu_json(struct weir_json *json, const struct weir_report_gpu *gpu);

#endif
