/* in_flight.h: chooses the number of requests to a server that are in flight, and the gap between extents that is
 * cheaper to read than a request, from measured times. Used by one thread. Callers pass the time, in ns of any clock.
 */
#ifndef WEIR_IO_IN_FLIGHT_H
#define WEIR_IO_IN_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_IN_FLIGHT_START = 64, WEIR_IN_FLIGHT_LEAST = 4 };

struct weir_in_flight {
    int limit;        /* the number to keep in flight */
    size_t gap_bytes; /* maximum gap between extents of one request */
    /* private */
    bool is_fixed_, is_trial_,
        is_new_;   /* is_trial_: the limit was just changed; is_new_: the window began before that */
    bool is_down_; /* this trial, or the next one, lowers the limit */
    int most_, flying_;
    int before_, hold_, next_hold_;     /* limit before the trial; windows until the next one, and after it */
    double growth_;                     /* factor of the next trial that raises the limit */
    double base_, best_rate_;           /* throughput before the trial; bytes/s of the link */
    uint64_t begin_ns_, at_ns_;         /* of the window, and of the last event */
    uint64_t full_ns_, bytes_;          /* in the window: time with `limit` in flight, bytes that arrived */
    uint64_t took_ns_;                  /* in the window: sum over requests */
    uint64_t first_ns_, last_first_ns_; /* shortest time to a first byte: in the window, and in the last one */
    uint64_t cut_ns_;                   /* when the limit was last lowered */
    int done_;                          /* requests that ended in the window */
};

/* most: bound of the limit. is_fixed: keeps the limit at `most`. gap_bytes: until the first measurement. */
void weir_in_flight_begin(struct weir_in_flight *f, int most, bool is_fixed, size_t gap_bytes, uint64_t now_ns);
void weir_in_flight_queued(struct weir_in_flight *f, uint64_t now_ns);
/* A request ended with this number of bytes. first_byte_ns, took_ns: from its start to its first byte (0 = unknown),
 * and to its end. */
void weir_in_flight_done(struct weir_in_flight *f, uint64_t now_ns, size_t bytes, uint64_t first_byte_ns,
                         uint64_t took_ns);
/* Returns how long to wait for more responses before the next are handled; 0 if few requests are in flight. */
uint64_t weir_in_flight_pause_ns(const struct weir_in_flight *f);
/* The server refused requests because there are too many (429, 503). */
void weir_in_flight_refused(struct weir_in_flight *f, uint64_t now_ns);

#endif
