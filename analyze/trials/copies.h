/* copies.h: the copies of a dataset that a benchmark compares: what they are called, how large they will be, and
 * keeping their files in the page cache. */
#ifndef WEIR_ANALYZE_TRIALS_COPIES_H
#define WEIR_ANALYZE_TRIALS_COPIES_H

#include "weir/base.h"
#include "weir/dataset.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known of the source. */
struct weir_copy_source {
    const char *codec;    /* name of most cameras' frame kind: "jpeg", "png", "raw" */
    const char *layout;   /* "act", "rlds" */
    uint64_t frames;      /* of all cameras and episodes */
    uint64_t bytes;       /* of its files */
    uint64_t raw_bytes;   /* that the frames are decoded */
    uint64_t fingerprint; /* of its files: names, sizes, times of writing */
    int episodes;
};
/* From an open dataset: its files' sizes, and the header of each camera's first frame. */
int weir_copy_source_of(struct weir_dataset *dataset, struct weir_copy_source *source, struct weir_err *err);

/* One format that --formats names: "as-is", or a format of weir convert and a codec, "lmdb:jpeg". */
struct weir_copy_spec {
    char name[64];
    char format[32]; /* "" = as-is */
    char codec[16];
};
/* -EINVAL when it is neither. Without a codec it is the source's. */
int weir_copy_spec_parse(struct weir_copy_spec *spec, const char *text, const char *source_codec, struct weir_err *err);
/* What --codec of weir convert is for it: "keep" where the source has this codec already. */
const char *weir_copy_codec_option(const struct weir_copy_spec *spec, const char *source_codec);

/* The first sample episodes (0 = all) in this format: how large that is at most, by the size of the frames. */
uint64_t weir_copy_bytes(const struct weir_copy_source *source, const struct weir_copy_spec *spec, int sample);

/* FOLDER/lmdb-jpeg-1a2b3c4d5e6f7081: the same for the same source, sample and options, else another. options: what else
 * decides what is copied, as text. */
int weir_copy_path(char *path, size_t size, const char *folder, const struct weir_copy_spec *spec,
                   const struct weir_copy_source *source, int sample, const char *options, const char *suffix);

/* ---- files ---- */

/* The files that are read for the dataset's frames (external ones, and each chunk of a folder, too), their sizes
 * together. Owned by the caller: weir_path_list_free. 0, -EFBIG or -ENOMEM; then the list is empty. */
int weir_copy_source_files(const struct weir_dataset *dataset, struct weir_path_list *files, uint64_t *bytes,
                           struct weir_err *err);
/* Regular files at or below path, their sizes together. Owned by the caller: weir_path_list_free. */
int weir_copy_files(const char *path, struct weir_path_list *files, uint64_t *bytes, struct weir_err *err);
/* Free bytes of the file system that path, or the nearest folder above it that exists, lies on; 0 = not known. */
uint64_t weir_copy_free_bytes(const char *path);
/* Reads what is not in the page cache. *cached: how much of the files is there then, 0..1; -1 = not known. Nothing is
 * read when memory has no room for them. */
int weir_copy_warm(const struct weir_path_list *files, double *cached, struct weir_err *err);
/* In-memory file systems drop nothing: a file there cannot be cold. */
bool weir_copy_in_memory(const char *path);

#endif
