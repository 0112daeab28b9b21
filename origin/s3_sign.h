/* s3_sign.h: AWS signature version 4, with libcrypto's HMAC and SHA-256. */
#ifndef WEIR_ORIGIN_S3_SIGN_H
#define WEIR_ORIGIN_S3_SIGN_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIR_S3_KEY_MAX = 512, WEIR_S3_TOKEN_MAX = 3584, WEIR_S3_REGION_MAX = 64, WEIR_S3_DATE = 17 };

/* Secrets. Wipe them with weir_s3_credentials_wipe. */
struct weir_s3_credentials {
    char key_id[WEIR_S3_KEY_MAX], secret[WEIR_S3_KEY_MAX];
    char token[WEIR_S3_TOKEN_MAX]; /* session token; "" = none */
    int64_t expires_s;             /* seconds since 1970; 0 = never */
};
void weir_s3_credentials_wipe(struct weir_s3_credentials *credentials);

struct weir_s3_request {
    const char *method;
    const char *path;  /* percent-encoded once */
    const char *query; /* "a=b&c=d", percent-encoded and sorted; "" = none */
    /* The signed headers as "name:value\n" in the order of their names, which are in lower case, and the names joined
     * by semicolons. */
    const char *headers, *names;
    const char *payload_hash; /* as in x-amz-content-sha256 */
    const char *region, *service;
    const char *date; /* "20130524T000000Z" */
};

/* The SHA-256 of an empty body. */
extern const char weir_s3_empty_hash[65];

/* Keys of a day, so that only the first signature of a day derives them. Begin with zeros; holds secrets. */
struct weir_s3_day {
    char scope[WEIR_S3_REGION_MAX + 64], secret[WEIR_S3_KEY_MAX];
    unsigned char key[32];
};

/* Writes the value of the header Authorization. Returns 0, or a negative code with err. */
int weir_s3_sign(const struct weir_s3_request *request, const struct weir_s3_credentials *credentials,
                 struct weir_s3_day *day, char *authorization, size_t size, struct weir_err *err);

/* Computes the SHA-256 of the bytes followed by the text. Returns false if the library fails. */
bool weir_sha256(const void *bytes, size_t n, const char *text, unsigned char hash[32]);

/* Writes the time as a date of a signature. */
void weir_s3_date(int64_t seconds, char date[WEIR_S3_DATE]);

#endif
