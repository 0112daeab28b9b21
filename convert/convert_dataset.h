/* convert_dataset.h: copies a dataset to another format. Several threads read, decode and encode, and one thread writes
 * (writer.h). At the end, the copy is compared with the source. */
#ifndef WEIR_CONVERT_CONVERT_DATASET_H
#define WEIR_CONVERT_CONVERT_DATASET_H

#include "weir/dataset.h"
#include "weir/loader.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_convert_codec { WEIR_CONVERT_KEEP, WEIR_CONVERT_RAW, WEIR_CONVERT_JPEG, WEIR_CONVERT_PNG };

enum weir_convert_color { WEIR_CONVERT_AS_RECORDED, WEIR_CONVERT_RGB, WEIR_CONVERT_BGR };

struct weir_convert_config {
    const char *to;     /* name of the copy's format, from weir_convert_format */
    const char *target; /* path of the copy, which must not exist; "target.partial" contains the unfinished copy */
    const char *source; /* path with which the dataset was opened */
    enum weir_convert_codec codec;
    int quality;       /* quality of new JPEGs, 1..100 */
    int width, height; /* size of the copy's frames; 0: the source's size */
    enum weir_convert_color color;
    int chunk_frames; /* frames per chunk; 0: the format's default */
    int workers;      /* number of threads; 0: one per usable core */
    int sample;       /* number of episodes to copy, from the first one on; 0: all */
    bool allow_narrowing;
    enum weir_on_error on_error;
    enum weir_on_warning on_warning;
    const char *how; /* all other options that affect the copy; a partial copy with a different string is not resumed */
    /* Reports a bad frame or episode (is_bad), or information about the conversion. Called on the thread that called
     * weir_convert. May be NULL. */
    void (*note)(void *user, bool is_bad, const char *line);
    /* done and total are numbers of frames. May be NULL. */
    void (*progress)(void *user, const char *doing, uint64_t done, uint64_t total);
    void *user;
};

struct weir_convert_report {
    int episodes, resumed;           /* episodes in the copy; number of them written by earlier calls */
    uint64_t frames, written_frames; /* frames in the copy; frames written by this call */
    uint64_t bad_frames, bad_episodes, substituted_frames;
    uint64_t source_bytes, copy_bytes; /* sizes of the files */
    double seconds, check_seconds;     /* duration of copying; duration of the final comparison */
    bool has_psnr;                     /* some frames were converted to JPEG */
    double psnr_mean, psnr_worst;      /* PSNR in dB over the frames with a loss; infinite if none exist */
    char psnr_worst_frame[512];
    const char *qpos_type, *action_type; /* number types in the copy */
};

/* Returns row i of the table of formats, or false past the end. *why_not is NULL if the format is built in. */
bool weir_convert_format(int i, const char **name, const char **summary, const char **why_not);

/* Returns the file name suffix of copies in row i's format, or "" if a copy is a folder. */
const char *weir_convert_format_suffix(int i);
/* Returns the name and suffix of the built-in format whose copies with frames of this codec are read fastest. Ignores
 * the format `except`. Returns NULL if no format that can store them is faster than the others. */
const char *weir_convert_fastest(const char *codec, const char *except, const char **suffix);
/* Returns whether row i's format can store frames of the kind with this name. */
bool weir_convert_format_holds(int i, const char *codec);
/* Writes the names of the frame kinds that row i's format can store. */
void weir_convert_format_kinds(int i, const char *separator, char *text, size_t size);

/* Converts a dataset, which must have been opened with depth and own_types. Returns 0, or a negative code with err.
 * On failure, the target is not created, and repeating the call resumes from the partial copy, "target.partial". */
int weir_convert(struct weir_dataset *dataset, const struct weir_convert_config *config,
                 struct weir_convert_report *report, struct weir_err *err);

#endif
