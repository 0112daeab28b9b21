/* check_frame.h: one thread's tools for looking at frames, and what it finds. */
#ifndef WEIR_PIPELINE_VERIFY_CHECK_FRAME_H
#define WEIR_PIPELINE_VERIFY_CHECK_FRAME_H

#include "pipeline/fetch.h"
#include "pipeline/probe.h"
#include "pipeline/verify/verify.h"

struct weir_frame_checker {
    struct weir_dataset *dataset; /* borrowed, as are probes: one a camera, width 0 = not known */
    const struct weir_camera_probe *probes;
    bool fast;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    uint8_t *image; /* of pixels; grown */
    size_t image_bytes;
    uint8_t *rows; /* of a block's frames; grown */
    size_t rows_bytes;
    uint64_t bytes; /* of frames so far, as stored */
};

/* Checkers of one set of files are opened by one thread, before any of them is used. */
int weir_frame_checker_open(struct weir_frame_checker *checker, struct weir_dataset *dataset,
                            struct weir_file_set *files, const struct weir_camera_probe *probes,
                            const struct weir_verify_config *config, struct weir_err *err);
void weir_frame_checker_close(struct weir_frame_checker *checker);

/* Told of every frame, in order. code 0: it is good, and hash is that of its bytes as stored, 0 = not known; negative:
 * kind and reason (lent until it returns) say what is wrong. Returns 0, or negative to end weir_check_frames with that.
 */
typedef int weir_frame_checked_fn(void *user, int t, int code, uint64_t hash, enum weir_finding_kind kind,
                                  const char *reason);

/* Looks at frames first .. first + n - 1. 0, or what checked returned. */
int weir_check_frames(struct weir_frame_checker *checker, int episode, int camera, int first, int n,
                      weir_frame_checked_fn *checked, void *user);

#endif
