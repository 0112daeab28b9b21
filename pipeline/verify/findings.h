/* findings.h: findings about the frames of one camera in one episode. They are collected in any order and reported in
 * the order of the frames. */
#ifndef WEIR_PIPELINE_VERIFY_FINDINGS_H
#define WEIR_PIPELINE_VERIFY_FINDINGS_H

#include "pipeline/samples/fetch.h"
#include "pipeline/samples/probe.h"
#include "pipeline/verify/verify.h"

/* Consecutive frames with the same fault. */
struct weir_finding_run {
    int t, frames;
    enum weir_finding_kind kind;
    char *why; /* owned */
};

struct weir_findings {
    struct weir_finding_run *runs;
    int n, capacity;
};

/* Adds a finding, or extends the last one if that ends just before t and has the same kind and reason. Returns 0 or
 * -ENOMEM. */
int weir_findings_add(struct weir_findings *list, int t, enum weir_finding_kind kind, const char *why);
/* Moves all findings of `from` to the end of `list`. Returns 0 or -ENOMEM; on -ENOMEM nothing is moved. */
int weir_findings_move(struct weir_findings *list, struct weir_findings *from);
void weir_findings_free(struct weir_findings *list);

/* Adds a finding for each repeated image. hashes: one per step; 0 = bad frame. Returns 0 or -ENOMEM. */
int weir_findings_repeats(struct weir_findings *list, const uint64_t *hashes, int steps, int repeat_steps);

/* Adds a finding for each frame with a chunk that was never written. Returns 0 or -ENOMEM. */
int weir_findings_fill(struct weir_findings *list, const struct weir_dataset *dataset, int episode, int camera);

/* Sorts the list by t, merges adjacent runs, and reports the findings. */
void weir_findings_report(struct weir_findings *list, const struct weir_dataset *dataset, int episode, int camera,
                          const struct weir_verify_config *config, struct weir_verify_totals *totals);

/* Builds the string "FILE: DATASET[t]: why" of one finding and reports the finding. */
void weir_finding_report(struct weir_finding *finding, const struct weir_verify_config *config,
                         struct weir_verify_totals *totals);

/* Reports a finding about a file, or about one dataset in the file (NULL = the file as a whole). */
void weir_finding_of_file(enum weir_finding_kind kind, const char *file, const char *dataset, const char *why,
                          const struct weir_verify_config *config, struct weir_verify_totals *totals);

/* Checks every file of a dataset with weir_dataset_check_file, several simultaneously, and reports damage in the order
 * of the files (check_files.c). Returns 0 even if there are findings, or negative on a resource shortage. */
int weir_check_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                     struct weir_verify_totals *totals, struct weir_err *err);

/* Reports faults that loading does not show (weir_dataset_review; review.c). Returns 0 even if there are findings, or
 * negative on a resource shortage. */
int weir_review_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                      struct weir_verify_totals *totals, struct weir_err *err);
/* Reports cameras whose images have another size than the dataset describes. probes: one per camera. */
struct weir_camera_probe;
void weir_findings_described_sizes(const struct weir_dataset *dataset, const struct weir_camera_probe *probes,
                                   const struct weir_verify_config *config, struct weir_verify_totals *totals);
/* Reports cameras whose videos have key frames so far apart that random frames are expensive. */
void weir_findings_key_frames(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                              struct weir_verify_totals *totals);

/* Reports dimensions of state and actions that have only one value. Returns 0 or -ENOMEM. */
int weir_findings_dimensions(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                             struct weir_verify_totals *totals);
/* Reports state and action values that are far from all others of their dimension, in one line per episode and
 * dimension (outliers.c). Returns 0 or -ENOMEM. */
int weir_findings_outliers(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                           struct weir_verify_totals *totals);

/* ---- check_frame.c: checks frames. Each thread needs its own checker. */

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
