/* claims.h: bounds the memory that an input can demand by the bytes that it really has. Sizes in headers cost nothing:
 * a compressed run, a repeated name or a hole in a sparse file announces gigabytes in a few bytes. */
#ifndef WEIR_BASE_CLAIMS_H
#define WEIR_BASE_CLAIMS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer whose size comes from an input may have this many bytes, and this many times the bytes that are stored. */
enum { WEIR_CLAIM_SPARE = 64 << 20, WEIR_CLAIM_RATIO = 64 };

/* Returns whether an input of which `stored` bytes exist may demand a buffer of this size. */
static inline bool weir_claim_fits(uint64_t bytes, uint64_t stored)
{
    return bytes <= WEIR_CLAIM_SPARE || (bytes - WEIR_CLAIM_SPARE) / WEIR_CLAIM_RATIO <= stored;
}

/* Returns how many of the n bytes at offset are stored; holes of a sparse file are not. Returns n for descriptors that
 * cannot report it. */
uint64_t weir_stored_bytes(int fd, uint64_t offset, uint64_t n);
/* Returns whether a file of n bytes may demand a buffer of this size; if not, *stored are the bytes that are stored. A
 * buffer of at most WEIR_CLAIM_SPARE bytes costs no call. */
bool weir_claim_fits_file(uint64_t bytes, int fd, uint64_t n, uint64_t *stored);

/* A tree of JSON values may have WEIR_CLAIM_SPARE bytes, and this many times those of its text. Trees of real documents
 * have 3 to 10 times as many; one of empty objects has 80 times as many. */
enum { WEIR_JSON_RATIO = 16 };

/* Checks what the tree of a text would take, before it is parsed. Returns 0, or -E2BIG with an error without advice.
 * *longest (may be NULL): the bytes of the longest string or number. */
int weir_json_claim(const char *text, size_t n, size_t *longest, struct weir_err *err);
/* Returns the first position at or after i that is not white space. */
size_t weir_json_blank(const char *text, size_t n, size_t i);
/* Returns the bytes of the JSON value at the start of the text: at most n, and 0 if it is not there. */
size_t weir_json_value(const char *text, size_t n);

#endif
