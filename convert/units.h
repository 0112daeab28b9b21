/* units.h: divides the frames of a copy into units of work for threads. Units have the order in which the writer needs
 * them. */
#ifndef WEIR_CONVERT_UNITS_H
#define WEIR_CONVERT_UNITS_H

#include "base/threads.h"
#include "convert/plan.h"
#include "datasets/synth/image_write.h"
#include "pipeline/samples/fetch.h"
#include "weir/decoder.h"

/* ---- transcode.c: converts a frame of the source to a frame of the copy. A transcoder is used by one thread. */

struct weir_transcoder {
    const struct weir_convert_plan *plan; /* borrowed */
    struct weir_fetcher fetcher;
    struct weir_decoder *decoder;
    uint8_t *pixels; /* last decoded frame; the buffer grows on demand */
    size_t pixels_bytes;
    struct weir_bytes encoded;
    const char *reason; /* reason of the last failure */
};

/* All transcoders that share files must be opened by one thread, before any of them is used. */
int weir_transcoder_open(struct weir_transcoder *t, const struct weir_convert_plan *plan, struct weir_file_set *files,
                         struct weir_err *err);
void weir_transcoder_close(struct weir_transcoder *t);

/* Converts a frame of an episode, which is numbered as in the source. bytes: the stored frame. *made is valid until the
 * next call, and only as long as bytes is valid. Returns 0, or a negative code with t->reason: -EBADMSG if the frame is
 * unusable. */
int weir_transcode(struct weir_transcoder *t, int episode, int camera, const uint8_t *bytes, size_t length,
                   const uint8_t **made, size_t *made_length);

/* Reads the frame at step `at` and converts it like weir_transcode. */
int weir_transcode_frame(struct weir_transcoder *t, int episode, int camera, int at, const uint8_t **made,
                         size_t *made_length);

/* Returns the size in bytes of a decoded frame of this camera in the copy. */
size_t weir_transcode_pixels(const struct weir_convert_plan *plan, int camera);

/* ---- units.c */

/* The frames of steps first .. first + n - 1 of cameras camera .. camera + n_cameras - 1. */
struct weir_unit {
    int episode; /* number of the episode in the copy */
    int camera, n_cameras, first, n;
    bool is_last; /* last unit of its episode */
};

struct weir_units {
    struct weir_unit *units;
    uint64_t n;
    int frames;   /* maximum number of frames per unit */
    size_t bytes; /* approximate size of the largest unit in decoded form */
};

/* Divides the episodes from first_episode on into units. A unit has frames from all cameras (by_step) or from one
 * camera. */
int weir_units_make(struct weir_units *units, const struct weir_convert_plan *plan, bool by_step, int first_episode,
                    struct weir_err *err);
void weir_units_free(struct weir_units *units);

/* Returns the maximum number of units in progress. */
int weir_units_window(const struct weir_units *units, int workers);

/* A converted frame. The frames of a unit are ordered by step, then by camera. */
struct weir_unit_frame {
    size_t offset, length; /* position in the slot's bytes */
    int code;              /* 0, or negative for a bad frame; reason is then set */
    char reason[WEIR_FETCH_REASON];
};

struct weir_unit_slot {
    uint8_t *bytes;
    size_t used, capacity;
    struct weir_unit_frame *frames;
};

int weir_unit_slots_open(struct weir_unit_slot **slots, int n, const struct weir_units *units, struct weir_err *err);
void weir_unit_slots_close(struct weir_unit_slot **slots, int n);

/* Converts the frames of a unit. Bad frames are recorded in the slot and are not errors. Returns a negative code with
 * err if resources are exhausted or a file has changed. */
int weir_unit_make(struct weir_transcoder *t, const struct weir_unit *unit, struct weir_unit_slot *slot,
                   struct weir_err *err);

/* Sets err to "FILE: DATASET[t]: reason" and returns code. */
int weir_unit_bad(const struct weir_convert_plan *plan, int episode, int camera, int t, int code, const char *reason,
                  struct weir_err *err);

#endif
