/* s3_process.h: runs the user's credential_process, as AWS's programs do: without a shell. */
#ifndef WEIR_ORIGIN_S3_PROCESS_H
#define WEIR_ORIGIN_S3_PROCESS_H

#include "origin/http.h"

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_PROCESS_WORDS_MAX = 64, WEIR_PROCESS_LIMIT_S = 60 }; /* the limit of AWS's SDK for Go */

/* Splits a command into words, in place, like Python's shlex.split: words end at blanks; single quotes keep everything,
 * double quotes all but \" and \\; elsewhere a backslash keeps the next character. words: ends with NULL. Returns the
 * number of words, or -EINVAL for a quote without an end, no word or too many. */
int weir_words_split(char *command, char *words[WEIR_PROCESS_WORDS_MAX + 1]);

/* Runs the command for at most limit_s and copies its output, at most size - 1 bytes, to text, with a final zero. The
 * host may ignore SIGCHLD or reap the process; its exit status is then unknown and counts as success. Returns the
 * number of bytes (one line is printed if that takes over a sixth of the limit); -ECANCELED; -ETIMEDOUT; or another
 * negative code with err. */
int weir_process_output(const char *command, int limit_s, const struct weir_waiter *waiter, char *text, size_t size,
                        struct weir_err *err);

#endif
