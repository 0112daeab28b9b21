/* epoch_lines.h: one line an epoch, and one when the first batch is there; as text and as JSON. */
#ifndef WEIR_PIPELINE_REPORT_EPOCH_LINES_H
#define WEIR_PIPELINE_REPORT_EPOCH_LINES_H

#include "prof/report/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where an epoch's bytes came from: nearly none of the dataset was in the page cache when it began, nearly all, some;
 * or reads passed the cache by. */
enum weir_reads { WEIR_READS_UNKNOWN, WEIR_READS_COLD, WEIR_READS_WARM, WEIR_READS_PARTLY, WEIR_READS_DIRECT };

struct weir_epoch_line {
    int epoch, epoch_count; /* 1-based */
    double total_s, train_s, val_s;
    double data_wait_fraction; /* 08 over training time of the training part; on a GPU its stream's waits too */
    double samples_per_s, images_per_s;
    uint64_t peak_rss_bytes;
    bool interrupted; /* the epoch was cut short */
    enum weir_reads reads;
    double cached_fraction;       /* of the dataset, when the epoch began; -1 = not known */
    bool gpu;                     /* there was one: */
    double gpu_busy_fraction;     /* of the epoch's time, that in which a step or a preparation ran */
    double copy_overlap_fraction; /* of the copies' time, that in which a step ran; -1 = not known */
    bool trained;                 /* something was trained: */
    double train_loss, val_loss;  /* means over the samples; NAN = there were none */
};

/* One line per epoch; the Chinese one matches grep "Epoch.*总耗时" and grep "耗时:". */
void weir_epoch_print(FILE *out, const struct weir_epoch_line *line, enum weir_lang lang);

/* How long it took until the first batch was there; each time includes the ones below it. */
struct weir_start_line {
    double first_batch_s, open_s, index_s;
    int files, files_from_index;
};
void weir_start_print(FILE *out, const struct weir_start_line *line, enum weir_lang lang);

/* What `weir run --seconds` measured: a part of the run, whatever epochs it lay in. */
struct weir_measured_line {
    double seconds, warm_up_s; /* seconds 0: the run ended before */
    uint64_t batches, samples, images;
    double samples_per_s, images_per_s;
    double data_wait_fraction; /* of the seconds, those in which the consumer waited; on a GPU its stream's waits too */
    uint64_t peak_rss_bytes;
    enum weir_reads reads;
    double cached_fraction; /* of the dataset, when the run began; -1 = not known */
};
void weir_measured_print(FILE *out, const struct weir_measured_line *line, enum weir_lang lang);

/* The log's lines, each one JSON object and a newline, flushed: docs/log-format.md. */
void weir_start_log(FILE *log, const struct weir_start_line *line);
void weir_epoch_log(FILE *log, const struct weir_epoch_line *line);
void weir_measured_log(FILE *log, const struct weir_measured_line *line);
/* The same members into an object that is open in json. */
void weir_start_json(struct weir_json *json, const struct weir_start_line *line);
void weir_epoch_json(struct weir_json *json, const struct weir_epoch_line *line);
/* "cold", "warm", "partly", "direct"; NULL = unknown. */
const char *weir_report_reads_name(enum weir_reads reads);

#ifdef __cplusplus
}
#endif

#endif
