/* report_parts_priv.h: parts of a loader's report, shared by the English table, the Chinese table and the log. */
#ifndef WEIR_PIPELINE_REPORT_REPORT_PARTS_PRIV_H
#define WEIR_PIPELINE_REPORT_REPORT_PARTS_PRIV_H

#include "weir/report.h"

/* Strings that --lang translates: the epoch line, and the epochs that a table covers. weir_report_stages_zh prints the
 * Chinese stage table. Everything else is English only. */
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
    WEIR_TEXT_AFTER_FILL,
    WEIR_TEXT_MEASURED,
    WEIR_TEXT_SINCE_TABLE,
    WEIR_TEXT_NO_EPOCH,
    WEIR_TEXT_ONE_EPOCH,
    WEIR_TEXT_EPOCHS,
    WEIR_TEXT_WALL,
    WEIR_TEXTS
};

/* Returns the WEIR_TEXTS format strings of a language. The English and Chinese strings print the same values. */
const char *const *weir_report_texts(enum weir_lang lang);
const char *const *weir_report_texts_zh(void);

/* Prints the stage table in the classic Chinese format. */
void weir_report_stages_zh(FILE *out, const struct weir_loader_report *report);

/* Prints the first errors kept and the number of further errors. Errors of a file that differ only in the frame share a
 * line. */
void weir_report_errors(FILE *out, const struct weir_loader_report *report);

/* Returns the percentage of the stored pixels that were decoded. */
double weir_report_decoded_percent(const struct weir_loader_report *report);

/* Return the bytes unpacked per byte of the frames, the bytes read per stored byte of the frames, and the frames per
 * unpacked block. */
double weir_chunks_unpacked(const struct weir_chunk_counts *counts);
double weir_chunks_read(const struct weir_chunk_counts *counts);
double weir_chunks_shared(const struct weir_chunk_counts *counts);

/* Returns the bytes per second of time spent, or 0 if no time was spent. */
double weir_source_bytes_per_s(const struct weir_report_source *source);

/* Returns the fraction of lookups that hit, 0..1. */
double weir_report_hit_rate(const struct weir_report_cache *cache);

/* Prints the figures per camera and per file, and the slowest calls. */
void weir_report_sources_print(FILE *out, const struct weir_loader_report *report);

/* Implements weir_loader_report_log. addition: members that a program adds; may be NULL. */
void weir_report_line(FILE *log, const struct weir_loader_report *report, const struct weir_report_addition *addition);

/* Prints the GPU's figures except its rows. Prints nothing without a GPU. */
void weir_report_gpu_print(FILE *out, const struct weir_report_gpu *gpu);

#endif
