/* Errors of servers: which requests are repeated, and when; messages; and the file of certificates. */
#include "base/shortage.h"
#include "origin/http_head.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool weir_client_is_passing(int status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

uint64_t weir_client_pause_ns(uint64_t pause_ns, int attempt, uint32_t retry_after_s, uint64_t random)
{
    static const uint64_t PAUSE_MAX_NS = (uint64_t)10 * 1000 * 1000 * 1000;
    uint64_t pause = pause_ns;
    for (int i = 1; i < attempt && pause < PAUSE_MAX_NS; i++)
        pause *= 2;
    pause = pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
    pause = pause / 2 + random % (pause / 2 + 1);
    uint64_t asked = (uint64_t)retry_after_s * 1000000000;
    return asked > pause ? asked : pause;
}

void weir_client_error_code(const char *body, size_t n, char code[64])
{
    static const char open[] = "<Code>";
    const char *at = memmem(body, n, open, sizeof open - 1);
    size_t length = 0;
    at = at ? at + sizeof open - 1 : body + n;
    while (length < 63 && at + length < body + n &&
           ((at[length] >= 'A' && at[length] <= 'Z') || (at[length] >= 'a' && at[length] <= 'z') || at[length] == '.'))
        length++;
    memcpy(code, at, length);
    code[length] = '\0';
}

int weir_client_status_error(const struct weir_client_head *head, const char *body, size_t n, bool has_secrets,
                             int attempts, struct weir_err *err)
{
    char code[64];
    weir_client_error_code(body, n, code);
    const char *open = *code ? " (" : "", *close = *code ? ")" : "";
    switch (head->status) {
    case 404:
    case 410:
        return weir_err_set(err, -ENOENT, "the server has no such file%s%s%s; check the URL", open, code, close);
    case 401:
    case 403:
        return weir_err_set(
            err, -EACCES, "the server refuses access, status %d%s%s%s; %s", head->status, open, code, close,
            has_secrets ? "check the credentials and the permissions" : "the file needs credentials or is not public");
    case 429:
    case 503:
        return weir_err_set(err, -EREMOTEIO,
                            "the server limits requests, status %d%s%s%s, also after %d attempts; use "
                            "fewer requests in flight (--io-depth)",
                            head->status, open, code, close, attempts);
    default:
        break;
    }
    if (head->status < 400 && *head->region)
        return weir_err_set(err, -EREMOTEIO, "the bucket is in region %s; set AWS_REGION to it", head->region);
    if (head->status < 400 && head->status != 304)
        return weir_err_set(err, -EREMOTEIO,
                            "the server redirects to another address (status %d), where credentials are "
                            "not sent; use the address of the data itself",
                            head->status);
    return weir_err_set(err, -EREMOTEIO, "the server fails with status %d%s%s%s; %s", head->status, open, code, close,
                        head->status < 500 ? "check the URL and the server"
                                           : "try again later, or look into the server's log");
}

bool weir_client_lacks_descriptors(struct weir_err *err)
{
    enum { NEEDED = 4 }; /* a connection and its resolver */
    int fds[NEEDED], n = 0, code = 0;
    while (n < NEEDED && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    if (n < NEEDED)
        code = -errno;
    while (n > 0)
        close(fds[--n]);
    if (code != -EMFILE && code != -ENFILE)
        return false;
    weir_err_set(err, code, "%s; %s", strerror(-code), weir_machine_advice(code));
    return true;
}

int weir_client_shortage(struct weir_err *err)
{
    return weir_client_lacks_descriptors(err) ? err->code : weir_no_memory(err);
}

const char *weir_client_authorities(void)
{
    static const char *const files[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
    static const char *const variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (getenv(variables[i]) && *getenv(variables[i]))
            return getenv(variables[i]);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (access(files[i], R_OK) == 0)
            return files[i];
    return NULL;
}
