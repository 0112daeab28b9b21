/* s3_credentials.h: finds the user's credentials for S3, in the order of AWS's own programs. */
#ifndef WEIR_ORIGIN_S3_CREDENTIALS_H
#define WEIR_ORIGIN_S3_CREDENTIALS_H

#include "origin/http.h"
#include "origin/s3_sign.h"

/* Finds credentials: environment, ~/.aws/credentials and ~/.aws/config (AWS_PROFILE), credential_process, the address
 * in AWS_CONTAINER_CREDENTIALS_*, the machine's metadata service (IMDSv2). Returns 0, or a negative code with err,
 * which contains no secret: -ECANCELED if the waiter ended it. waiter: NULL = nobody. */
int weir_s3_credentials_find(struct weir_s3_credentials *credentials, const struct weir_waiter *waiter,
                             struct weir_err *err);

/* Finds the region: AWS_REGION, AWS_DEFAULT_REGION, the profile, or "us-east-1". Returns 0, or -EINVAL with err. */
int weir_s3_region(char region[WEIR_S3_REGION_MAX], struct weir_err *err);

/* ---- parts, for tests and fuzzing ---- */

/* Finds a key in a section of an INI file ("[default]" in the file of credentials, "[profile NAME]" in config). Returns
 * false if it is missing or too long. key NULL: returns whether the section exists. */
bool weir_ini_find(const char *text, const char *section, const char *key, char *value, size_t size);

/* Parses {"AccessKeyId":..., "SecretAccessKey":..., "SessionToken" or "Token":..., "Expiration":...}. where: for the
 * message. */
int weir_s3_credentials_json(struct weir_s3_credentials *credentials, const char *text, size_t n, const char *where,
                             struct weir_err *err);

/* Parses "2013-05-24T00:00:00Z". Returns seconds since 1970, or 0. */
int64_t weir_s3_time(const char *text);

/* ---- s3_process.c: the user's credential_process, run without a shell, as AWS's programs do ---- */

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
