/* Signatures and credentials of an origin's requests. */
#include "base/shortage.h"
#include "origin/remote_priv.h"
#include "origin/s3_credentials.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { EARLY_S = 300, AGAIN_S = 10, SLICE_NS = 100 * 1000 * 1000 };

/* Writes the headers of a signed request. Called with remote->secrets held. */
static int sign(struct weir_remote *r, const struct weir_signed *s, struct weir_client_headers *out,
                struct weir_err *err)
{
    char date[WEIR_S3_DATE], headers[WEIR_S3_TOKEN_MAX + 1024], authorization[WEIR_S3_KEY_MAX + 512];
    const char *token = r->credentials.token;
    weir_s3_date((int64_t)time(NULL), date);
    snprintf(headers, sizeof headers, "host:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n%s%s%s", r->host,
             weir_s3_empty_hash, date, *token ? "x-amz-security-token:" : "", token, *token ? "\n" : "");
    const struct weir_s3_request request = {
        .method = s->method,
        .path = s->path,
        .query = s->query,
        .headers = headers,
        .names = *token ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                        : "host;x-amz-content-sha256;x-amz-date",
        .payload_hash = weir_s3_empty_hash,
        .region = r->region,
        .service = "s3",
        .date = date,
    };
    int rc = weir_s3_sign(&request, &r->credentials, &r->day, authorization, sizeof authorization, err);
    enum { LINE = sizeof out->lines[0] };
    if (rc == 0) {
        snprintf(out->lines[out->n++], LINE, "x-amz-content-sha256: %s", weir_s3_empty_hash);
        snprintf(out->lines[out->n++], LINE, "x-amz-date: %s", date);
        snprintf(out->lines[out->n++], LINE, "Authorization: %s", authorization);
        if (*token)
            snprintf(out->lines[out->n++], LINE, "x-amz-security-token: %s", token);
    }
    if (*token)
        explicit_bzero(headers, sizeof headers);
    return rc;
}

/* Finds credentials if there are none, or they expire soon. Those that are still valid are used if that fails. It is
 * tried again after a while: a process may take a minute to fail. Called with remote->secrets held. */
static int renew(struct weir_remote *r, struct weir_err *err)
{
    struct weir_s3_credentials found;
    int64_t now_s = (int64_t)time(NULL), expires_s = r->credentials.expires_s;
    bool valid = r->has_credentials && (expires_s == 0 || expires_s > now_s);
    if (valid && (expires_s == 0 || expires_s >= now_s + EARLY_S || now_s < r->renew_s))
        return 0;
    if (!valid && r->no_credentials.code && now_s < r->renew_s)
        return weir_err_set(err, r->no_credentials.code, "%s", r->no_credentials.text);
    struct weir_err why = WEIR_ERR_NONE;
    const struct weir_waiter waiter = {weir_remote_stopped, r};
    int rc = weir_s3_credentials_find(&found, &waiter, &why);
    if (rc == 0)
        r->credentials = found;
    weir_s3_credentials_wipe(&found);
    r->renew_s = (int64_t)time(NULL) + AGAIN_S;
    r->no_credentials = rc == 0 || rc == -ECANCELED || weir_is_shortage(rc) ? WEIR_ERR_NONE : why;
    r->has_credentials = rc == 0 || valid;
    return r->has_credentials ? 0 : weir_err_set(err, rc, "%s", why.text);
}

/* Another thread may be finding credentials: only some threads can end that. */
static int lock_secrets(struct weir_remote *r, struct weir_err *err)
{
    struct timespec until;
    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SLICE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_mutex_timedlock(&r->secrets, &until) == 0)
            return 0;
    } while (!weir_remote_stopped(r));
    return weir_err_set(err, -ECANCELED, "interrupted");
}

static int prepare(void *user, struct weir_client_headers *headers, struct weir_err *err)
{
    const struct weir_signed *s = user;
    struct weir_remote *r = s->remote;
    int rc = lock_secrets(r, err);
    if (rc < 0)
        return rc;
    rc = renew(r, err);
    if (rc == 0)
        rc = sign(r, s, headers, err);
    pthread_mutex_unlock(&r->secrets);
    return rc;
}

void weir_remote_set_signature(struct weir_client_request *request, const struct weir_signed *s)
{
    bool is_signed = s->remote->is_s3 && !s->remote->anonymous;
    request->prepare = is_signed ? prepare : NULL;
    request->user = (void *)s;
    request->has_secrets = is_signed;
}
