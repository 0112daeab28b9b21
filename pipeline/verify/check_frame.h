/* check_frame.h: checks frames. Each thread needs its own checker. */
#ifndef WEIR_PIPELINE_VERIFY_CHECK_FRAME_H
#define WEIR_PIPELINE_VERIFY_CHECK_FRAME_H

#include "pipeline/samples/fetch.h"
#include "pipeline/samples/probe.h"
#include "pipeline/verify/verify.h"

struct weir_frame_checker {
    struct weir_dataset *dataset; /* borrowed, as is probes, which has one element per camera (width 0 = unknown) */
    const struct weir_camera_probe *probes;
    bool fast;
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    uint8_t *image; /* buffer for pixels; grows on demand */
    size_t image_bytes;
    uint64_t bytes; /* stored bytes of the frames checked so far */
};

/* Before any checker is used, one thread must open all checkers of a set of files. */
int weir_frame_checker_open(struct weir_frame_checker *checker, struct weir_dataset *dataset,
                            struct weir_file_set *files, const struct weir_camera_probe *probes,
                            const struct weir_verify_config *config, struct weir_err *err);
void weir_frame_checker_close(struct weir_frame_checker *checker);

/* Called for every frame, in order. If code is 0, the frame is good, and hash is the hash of its stored bytes (0 =
 * unknown). If code is negative, kind and reason describe the fault; reason is valid only during the call. Returns 0,
 * or a negative value that ends weir_check_frames, which then returns it. */
typedef int weir_frame_checked_fn(void *user, int t, int code, uint64_t hash, enum weir_finding_kind kind,
                                  const char *reason);

/* Checks frames first .. first + n - 1. Returns 0, or the negative result of `checked`. */
int weir_check_frames(struct weir_frame_checker *checker, int episode, int camera, int first, int n,
                      weir_frame_checked_fn *checked, void *user);

#endif
