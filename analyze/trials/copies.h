/* copies.h: copies of a dataset in other formats: their names, sizes and files, and the files' state in the page cache.
 */
#ifndef WEIR_ANALYZE_TRIALS_COPIES_H
#define WEIR_ANALYZE_TRIALS_COPIES_H

#include "weir/base.h"
#include "weir/dataset.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Figures of the source. */
struct weir_copy_source {
    const char *codec;    /* name of the frame kind, such as "jpeg", "png" or "raw" */
    const char *layout;   /* such as "act" or "rlds" */
    uint64_t frames;      /* frames of all cameras and episodes */
    uint64_t bytes;       /* size of its files */
    uint64_t raw_bytes;   /* size of the decoded frames */
    uint64_t fingerprint; /* hash of the names, sizes and modification times of its files */
    int episodes;
};
/* Fills in source from the files' sizes and the header of each camera's first frame. */
int weir_copy_source_of(struct weir_dataset *dataset, struct weir_copy_source *source, struct weir_err *err);

/* An item of --formats: "as-is", or a format of weir convert and a codec, such as "lmdb:jpeg". */
struct weir_copy_spec {
    char name[64];
    char format[32]; /* empty for as-is */
    char codec[16];
};
/* Parses an item of --formats. The default codec is the source's. Returns 0, or -EINVAL if the string is invalid. */
int weir_copy_spec_parse(struct weir_copy_spec *spec, const char *text, const char *source_codec, struct weir_err *err);
/* Returns the value for weir convert's --codec, which is "keep" if the source already has this codec. */
const char *weir_copy_codec_option(const struct weir_copy_spec *spec, const char *source_codec);

/* Returns the max size of a copy of the first `sample` episodes (0 = all), computed from the size of the frames. */
uint64_t weir_copy_bytes(const struct weir_copy_source *source, const struct weir_copy_spec *spec, int sample);

/* Writes a path such as FOLDER/lmdb-jpeg-1a2b3c4d5e6f7081, whose name depends on source, sample and options. options: a
 * string with everything else that influences the copy. */
int weir_copy_path(char *path, size_t size, const char *folder, const struct weir_copy_spec *spec,
                   const struct weir_copy_source *source, int sample, const char *options, const char *suffix);

/* ---- a temporary folder ---- */

/* Creates the folder weir-NAME-XXXXXX in $TMPDIR or /tmp, and sets *folder to its path (owned,
 * weir_copy_folder_remove). While it exists, repeated signals do not end the process if `interrupted` is
 * weir_interrupted. */
int weir_copy_folder_make(char **folder, const char *name, const volatile sig_atomic_t *interrupted,
                          struct weir_err *err);
/* Removes the folder with its content, and sets *folder to NULL. Has no effect on NULL. */
void weir_copy_folder_remove(char **folder, const volatile sig_atomic_t *interrupted);

/* ---- files ---- */

/* Lists the files that contain the dataset's frames, including external files and each chunk of a folder, but not
 * files on servers, and adds up the sizes of all. The caller frees the list with weir_path_list_free. Returns 0, or
 * with an empty list -EFBIG, -ENOMEM, or -ENOTSUP if the dataset has no cameras, so that trials have no rate to
 * compare.
 */
int weir_copy_source_files(const struct weir_dataset *dataset, struct weir_path_list *files, uint64_t *bytes,
                           struct weir_err *err);
/* Lists the regular files at or below path, and adds up their sizes. The caller frees the list with
 * weir_path_list_free. */
int weir_copy_files(const char *path, struct weir_path_list *files, uint64_t *bytes, struct weir_err *err);
/* Returns the free bytes in the file system of path, or of its nearest existing parent; 0 = unknown. */
uint64_t weir_copy_free_bytes(const char *path);
/* Reads the files into the page cache if there is enough free memory. Sets *cached to the fraction of their bytes that
 * is then in the page cache, or to -1 if it is unknown. */
int weir_copy_warm(const struct weir_path_list *files, double *cached, struct weir_err *err);
/* Returns whether path is in an in-memory file system, whose files cannot be cold. */
bool weir_copy_in_memory(const char *path);

#endif
