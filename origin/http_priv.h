/* http_priv.h: parts of the client that need no libcurl. */
#ifndef WEIR_ORIGIN_HTTP_PRIV_H
#define WEIR_ORIGIN_HTTP_PRIV_H

#include "origin/http.h"

/* Returns whether a response with this status may succeed when it is repeated. */
bool weir_client_is_passing(int status);
/* Returns the pause before the next attempt in ns. attempt: number of attempts so far; random: any number. */
uint64_t weir_client_pause_ns(uint64_t pause_ns, int attempt, uint32_t retry_after_s, uint64_t random);
/* Servers that ask for a longer pause are not asked again. */
enum { WEIR_CLIENT_RETRY_AFTER_MAX_S = 60 };

/* Finds the error code in the body of a response, such as ExpiredToken in S3's XML. Empty if there is none. */
void weir_client_error_code(const char *body, size_t n, char code[64]);
/* Returns the error of a response whose status is an error. body: the first n bytes of its body. */
int weir_client_status_error(const struct weir_client_head *head, const char *body, size_t n, bool has_secrets,
                             int attempts, struct weir_err *err);

/* libcurl reports missing descriptors as missing memory or as a broken connection. Returns whether the process lacks
 * them, with the error. */
bool weir_client_lacks_descriptors(struct weir_err *err);
/* Returns the error of a call of libcurl that lacked a resource: descriptors, else memory. */
int weir_client_shortage(struct weir_err *err);

/* Returns the file of certificate authorities, which is at another place in each distribution, or NULL. */
const char *weir_client_authorities(void);

#endif
