/* bad_input.h: one bad dataset, tried in every way: through the loader with each --on-error, and through the program.
 */
#ifndef WEIR_TESTS_BAD_INPUT_H
#define WEIR_TESTS_BAD_INPUT_H

#include "tests/h5_fixture.h"

/* What --on-error skip and substitute make of it. */
enum bad_tolerated {
    BAD_STOPS,      /* nothing can be run */
    BAD_LEAVES_OUT, /* whole episodes are left out */
    BAD_LOSES,      /* frames are skipped or substituted */
};

struct bad_expect {
    int code;             /* under --on-error fail */
    const char *parts[4]; /* all of them are in the message */
    enum bad_tolerated tolerated;
    int episodes;          /* left out */
    int frames, skipped;   /* bad ones met, samples lost with --on-error skip */
    int substituted, lost; /* with --on-error substitute: replaced, and samples lost all the same */
    bool info_is_fine;     /* weir info does not look that far */
};

/* Shorthands; parts may be NULL. */
struct bad_expect bad_stops(int code, const char *part, const char *other);
struct bad_expect bad_leaves_out_one(int code, const char *file, const char *part, const char *other);

/* Fails the Criterion test that calls it, with about in the text. */
void bad_input_try(const char *about, const char *path, struct bad_expect expect);

/* Runs the program with these arguments (NULL at the end; "weir" is not among them) and returns its exit status, or
 * 256 + signal. *err is what it wrote to stderr and *out to stdout, to be freed; out may be NULL. unprivileged: as
 * nobody, when that is possible. -1 when $WEIR_PROGRAM is not there. */
int bad_input_program(const char *const *arguments, bool unprivileged, char **out, char **err);

/* A folder of three episodes of this kind, seeds 0 to 2; returns its path. */
const char *bad_input_episodes(const struct h5fx_episode *episode);
/* Path of its episode; one of the last eight. */
const char *bad_input_episode(int i);

#endif
