/* copies.h: copies of a dataset in other formats: their names and sizes, and the page cache of their files. */
#ifndef WEIR_ANALYZE_TRIALS_COPIES_H
#define WEIR_ANALYZE_TRIALS_COPIES_H

#include "weir/base.h"
#include "weir/dataset.h"

#include <stdbool.h>
#include <stdint.h>

/* Figures of the source. */
struct weir_copy_source {
    const char *codec;    /* name of most cameras' frame kind: "jpeg", "png", "raw" */
    const char *layout;   /* "act", "rlds" */
    uint64_t frames;      /* of all cameras and episodes */
    uint64_t bytes;       /* of its files */
    uint64_t raw_bytes;   /* of the decoded frames */
    uint64_t fingerprint; /* hash of its files' names, sizes and modification times */
    int episodes;
};
/* Fills in source from the files' sizes and the header of each camera's first frame. */
int weir_copy_source_of(struct weir_dataset *dataset, struct weir_copy_source *source, struct weir_err *err);

/* One item of --formats: "as-is", or a format of weir convert and a codec, "lmdb:jpeg". */
struct weir_copy_spec {
    char name[64];
    char format[32]; /* "" = as-is */
    char codec[16];
};
/* -EINVAL when text is neither. The default codec is the source's. */
int weir_copy_spec_parse(struct weir_copy_spec *spec, const char *text, const char *source_codec, struct weir_err *err);
/* The value of weir convert's --codec: "keep" where the source has this codec already. */
const char *weir_copy_codec_option(const struct weir_copy_spec *spec, const char *source_codec);

/* Max size of a copy of the first sample episodes (0 = all), from the size of the frames. */
uint64_t weir_copy_bytes(const struct weir_copy_source *source, const struct weir_copy_spec *spec, int sample);

/* Writes FOLDER/lmdb-jpeg-1a2b3c4d5e6f7081, a name that depends on source, sample and options. options: other
 * influences on the copy, as text. */
int weir_copy_path(char *path, size_t size, const char *folder, const struct weir_copy_spec *spec,
                   const struct weir_copy_source *source, int sample, const char *options, const char *suffix);

/* ---- files ---- */

/* Lists the files that hold the dataset's frames, including external ones and each chunk of a folder, and sums up their
 * sizes. Owned by the caller: weir_path_list_free. 0, -EFBIG or -ENOMEM; then the list is empty. */
int weir_copy_source_files(const struct weir_dataset *dataset, struct weir_path_list *files, uint64_t *bytes,
                           struct weir_err *err);
/* Lists the regular files at or below path, and sums up their sizes. Owned by the caller: weir_path_list_free. */
int weir_copy_files(const char *path, struct weir_path_list *files, uint64_t *bytes, struct weir_err *err);
/* Free bytes on the file system of path, or of its nearest existing parent; 0 = not known. */
uint64_t weir_copy_free_bytes(const char *path);
/* Reads the files into the page cache if free memory suffices. *cached: fraction of them there afterwards, 0..1; -1 =
 * not known. */
int weir_copy_warm(const struct weir_path_list *files, double *cached, struct weir_err *err);
/* Whether path is on an in-memory file system, whose files cannot be cold. */
bool weir_copy_in_memory(const char *path);

#endif
