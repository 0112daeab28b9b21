/* convert_dataset.h: copies a dataset into another format. Several threads read, decode and encode; one thread writes
 * (writer.h). At the end source and copy are compared. */
#ifndef WEIR_CONVERT_CONVERT_DATASET_H
#define WEIR_CONVERT_CONVERT_DATASET_H

#include "weir/dataset.h"
#include "weir/loader.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_convert_codec { WEIR_CONVERT_KEEP, WEIR_CONVERT_RAW, WEIR_CONVERT_JPEG, WEIR_CONVERT_PNG };

enum weir_convert_color { WEIR_CONVERT_AS_RECORDED, WEIR_CONVERT_RGB, WEIR_CONVERT_BGR };

struct weir_convert_config {
    const char *to;     /* name of the copy's format: weir_convert_format */
    const char *target; /* path of the copy, which must not exist. Data goes to "target.partial" first */
    const char *source; /* path of the dataset, as it was opened */
    enum weir_convert_codec codec;
    int quality;       /* of new JPEGs, 1..100 */
    int width, height; /* of the copy's frames; 0 = the source's */
    enum weir_convert_color color;
    int chunk_frames; /* 0 = the format's choice */
    int workers;      /* threads; 0 = one per usable core */
    int sample;       /* copy only the first episodes; 0 = all */
    bool allow_narrowing;
    enum weir_on_error on_error;
    const char *how; /* all other options that shape the copy; a partial copy with another text is not resumed */
    /* Called from the calling thread; may be NULL. line: a frame or an episode that is not copied unchanged (is_bad),
     * or information about the conversion. */
    void (*note)(void *user, bool is_bad, const char *line);
    void (*progress)(void *user, const char *doing, uint64_t done, uint64_t total); /* frames */
    void *user;
};

struct weir_convert_report {
    int episodes, resumed;           /* in the copy; of those, written by an earlier call */
    uint64_t frames, written_frames; /* in the copy; by this call */
    uint64_t bad_frames, bad_episodes, substituted_frames;
    uint64_t source_bytes, copy_bytes; /* of the files */
    double seconds, check_seconds;     /* copying; the comparison at the end */
    bool has_psnr;                     /* some frames became JPEGs */
    double psnr_mean, psnr_worst;      /* dB, over frames with a loss; infinite: none */
    char psnr_worst_frame[512];
    const char *qpos_type, *action_type; /* of the copy's numbers */
};

/* Row i of the table of formats; false past the end. why_not is NULL for one that is built in. */
bool weir_convert_format(int i, const char **name, const char **summary, const char **why_not);

/* The usual suffix of a copy in row i's format; "" for a folder. */
const char *weir_convert_format_suffix(int i);
/* Returns the format, other than except, whose copies of such frames are read fastest, and its suffix; NULL when no
 * format that is built in and can hold them is faster than others. */
const char *weir_convert_fastest(const char *codec, const char *except, const char **suffix);
/* Returns true when row i's format can hold frames of this kind, by its name. */
bool weir_convert_format_holds(int i, const char *codec);
/* Writes the names of the kinds that row i's format can hold. */
void weir_convert_format_kinds(int i, const char *separator, char *text, size_t size);

/* dataset: opened with depth and own_types. 0, or negative with err: target does not exist then, and the same call
 * resumes from the partial copy beside it. */
int weir_convert(struct weir_dataset *dataset, const struct weir_convert_config *config,
                 struct weir_convert_report *report, struct weir_err *err);

#endif
