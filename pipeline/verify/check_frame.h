/* check_frame.h: checks frames; one checker per thread. */
#ifndef WEIR_PIPELINE_VERIFY_CHECK_FRAME_H
#define WEIR_PIPELINE_VERIFY_CHECK_FRAME_H

#include "pipeline/samples/fetch.h"
#include "pipeline/samples/probe.h"
#include "pipeline/verify/verify.h"

struct weir_frame_checker {
    struct weir_dataset *dataset; /* borrowed, like probes: one per camera, width 0 = unknown */
    const struct weir_camera_probe *probes;
    bool fast;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    uint8_t *image; /* pixels; grows */
    size_t image_bytes;
    uint64_t bytes; /* stored bytes of the frames so far */
};

/* Open all checkers of one set of files from one thread, before using any of them. */
int weir_frame_checker_open(struct weir_frame_checker *checker, struct weir_dataset *dataset,
                            struct weir_file_set *files, const struct weir_camera_probe *probes,
                            const struct weir_verify_config *config, struct weir_err *err);
void weir_frame_checker_close(struct weir_frame_checker *checker);

/* Called for every frame, in order. code 0: the frame is good, and hash is that of its stored bytes, 0 = unknown;
 * negative: kind and reason (valid during the call) describe the fault. Returns 0, or negative to make
 * weir_check_frames return that. */
typedef int weir_frame_checked_fn(void *user, int t, int code, uint64_t hash, enum weir_finding_kind kind,
                                  const char *reason);

/* Checks frames first .. first + n - 1. Returns 0, or the result of checked. */
int weir_check_frames(struct weir_frame_checker *checker, int episode, int camera, int first, int n,
                      weir_frame_checked_fn *checked, void *user);

#endif
