/* loader_fixture.h: small datasets, damaged frames and whole runs, for the tests of the loader. Free of Criterion, so
 * that plain programs can use it: what must not fail prints one line and aborts. */
#ifndef WEIR_TESTS_LOADER_FIXTURE_H
#define WEIR_TESTS_LOADER_FIXTURE_H

#include "pipeline/loader.h"

#include <stdio.h>

void fixture_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A folder under /tmp for this process, and its removal with all that is in it. */
void fixture_open(void);
void fixture_close(void);
/* A path in that folder; one of the last eight. */
const char *fixture_path(const char *name);

/* Writes synthetic episodes into a new folder of this name and returns its path. cameras may be NULL. */
const char *fixture_synth(const char *name, const char *format, int episodes, int steps, int width, int height,
                          const char *cameras);
/* Path of episode number i of such a folder. */
const char *fixture_episode(const char *data, const char *format, int episode);

/* Path of a real dataset below $WEIR_DATA/episodes, or NULL after a line that says it is not there. */
const char *fixture_real(const char *name);

enum fixture_damage {
    FIXTURE_NO_SOI, /* the first byte: not a JPEG any more */
    FIXTURE_ZEROED, /* zeros from the middle on: the library only warns */
};

/* Damages one frame of the dataset in its file. Frames are found by their extent. */
void fixture_damage(const char *data, int episode, int camera, int t, enum fixture_damage how);

/* The checksum lines of a whole run, to be freed. *rc is the last return of weir_loader_next, *err its text. */
char *fixture_checksums(const struct weir_loader_config *config, int *rc, struct weir_err *err);

/* Opens or dies. */
struct weir_loader *fixture_loader(const struct weir_loader_config *config);

/* Distinct frames of one camera that a batch's samples need, with so much history. */
uint64_t fixture_frames(const struct weir_batch *batch, int history);

/* An image beside the real data ("testimages/testorig.jpg" is of libjpeg-turbo's references), to be freed; NULL and
 * length 0 when it is not there. */
uint8_t *fixture_test_image(const char *name, size_t *length);

#endif
