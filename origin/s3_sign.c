#include "origin/s3_sign.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HASH = 32, SCOPE_MAX = 256, CANONICAL_MAX = 16 << 10 };

const char weir_s3_empty_hash[65] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

void weir_s3_credentials_wipe(struct weir_s3_credentials *credentials)
{
    explicit_bzero(credentials, sizeof *credentials);
}

void weir_s3_date(int64_t seconds, char date[WEIR_S3_DATE])
{
    struct tm tm = {0};
    time_t t = (time_t)seconds;
    if (!gmtime_r(&t, &tm) || strftime(date, WEIR_S3_DATE, "%Y%m%dT%H%M%SZ", &tm) != WEIR_S3_DATE - 1)
        memcpy(date, "19700101T000000Z", WEIR_S3_DATE);
}

static void to_hex(const unsigned char hash[HASH], char text[2 * HASH + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < HASH; i++) {
        text[2 * i] = digits[hash[i] >> 4];
        text[2 * i + 1] = digits[hash[i] & 15];
    }
    text[2 * HASH] = '\0';
}

bool weir_sha256(const void *bytes, size_t n, const char *text, unsigned char hash[HASH])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(context, bytes, n) == 1 && EVP_DigestUpdate(context, text, strlen(text)) == 1 &&
              EVP_DigestFinal_ex(context, hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    return ok;
}

static bool hmac(const void *key, size_t key_bytes, const char *text, unsigned char out[HASH])
{
    unsigned int n = HASH;
    return HMAC(EVP_sha256(), key, (int)key_bytes, (const unsigned char *)text, strlen(text), out, &n) != NULL;
}

/* Derives the signing key, unless the day has it. */
static bool derive(struct weir_s3_day *day, const struct weir_s3_request *r, const char *secret, const char *scope)
{
    char first[WEIR_S3_KEY_MAX + 8], date[9];
    unsigned char key[HASH];
    if (strcmp(day->scope, scope) == 0 && strcmp(day->secret, secret) == 0)
        return true;
    snprintf(first, sizeof first, "AWS4%s", secret);
    snprintf(date, sizeof date, "%.8s", r->date);
    bool ok = hmac(first, strlen(first), date, key) && hmac(key, HASH, r->region, key) &&
              hmac(key, HASH, r->service, key) && hmac(key, HASH, "aws4_request", day->key);
    explicit_bzero(first, sizeof first);
    explicit_bzero(key, sizeof key);
    snprintf(day->scope, sizeof day->scope, "%s", ok ? scope : "");
    snprintf(day->secret, sizeof day->secret, "%s", ok ? secret : "");
    return ok;
}

int weir_s3_sign(const struct weir_s3_request *r, const struct weir_s3_credentials *credentials,
                 struct weir_s3_day *day, char *authorization, size_t size, struct weir_err *err)
{
    char scope[sizeof day->scope], canonical[CANONICAL_MAX], text[SCOPE_MAX + 2 * HASH + 64], hex[2 * HASH + 1];
    unsigned char hash[HASH];
    int n = snprintf(scope, sizeof scope, "%.8s/%s/%s/aws4_request", r->date, r->region, r->service);
    bool fits = n > 0 && (size_t)n < sizeof scope;
    n = snprintf(canonical, sizeof canonical, "%s\n%s\n%s\n%s\n%s\n%s", r->method, r->path, r->query, r->headers,
                 r->names, r->payload_hash);
    fits = fits && n > 0 && (size_t)n < sizeof canonical;
    if (!fits)
        return weir_err_set(err, -ENAMETOOLONG, "the request is too long to be signed; use shorter names");
    unsigned int length = HASH;
    bool ok = EVP_Digest(canonical, (size_t)n, hash, &length, EVP_sha256(), NULL) == 1;
    to_hex(hash, hex);
    snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", r->date, scope, hex);
    ok = ok && derive(day, r, credentials->secret, scope) && hmac(day->key, HASH, text, hash);
    explicit_bzero(canonical, (size_t)n); /* contains the session token */
    if (!ok)
        return weir_err_set(err, -ENOTSUP, "libcrypto refuses SHA-256, so requests cannot be signed");
    to_hex(hash, hex);
    n = snprintf(authorization, size, "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                 credentials->key_id, scope, r->names, hex);
    return n > 0 && (size_t)n < size ? 0 : weir_err_set(err, -ENAMETOOLONG, "the access key's name is too long");
}
