/* units.h: the frames of a copy in runs, each the work of one thread, in the order that a writer wants them. */
#ifndef WEIR_CONVERT_UNITS_H
#define WEIR_CONVERT_UNITS_H

#include "convert/ordered.h"
#include "convert/transcode.h"

/* Steps first .. first + n - 1 of cameras camera .. camera + n_cameras - 1. */
struct weir_unit {
    int episode; /* of the copy */
    int camera, n_cameras, first, n;
    bool is_last; /* of its episode */
};

struct weir_units {
    struct weir_unit *units;
    uint64_t n;
    int frames;   /* of the largest */
    size_t bytes; /* that it takes as pixels, about */
};

/* Units of episodes first_episode and after. by_step: of all cameras; else of one. */
int weir_units_make(struct weir_units *units, const struct weir_convert_plan *plan, bool by_step, int first_episode,
                    struct weir_err *err);
void weir_units_free(struct weir_units *units);

/* How many units may be under way. */
int weir_units_window(const struct weir_units *units, int workers);

/* Frames of a unit: its steps, all of its cameras of each. */
struct weir_unit_frame {
    size_t offset, length; /* in the slot's bytes */
    int code;              /* 0, or negative: it is bad, as reason says */
    char reason[WEIR_FETCH_REASON];
};

struct weir_unit_slot {
    uint8_t *bytes;
    size_t used, capacity;
    struct weir_unit_frame *frames;
};

int weir_unit_slots_open(struct weir_unit_slot **slots, int n, const struct weir_units *units, struct weir_err *err);
void weir_unit_slots_close(struct weir_unit_slot **slots, int n);

/* Makes the frames of a unit. Bad ones are noted in the slot; negative when the machine lacks something, or a file has
 * changed. */
int weir_unit_make(struct weir_transcoder *t, const struct weir_unit *unit, struct weir_unit_slot *slot,
                   struct weir_err *err);

/* "FILE: DATASET[t]: reason" */
int weir_unit_bad(const struct weir_convert_plan *plan, int episode, int camera, int t, int code, const char *reason,
                  struct weir_err *err);

#endif
