/* Addresses to listen on, and names of hosts in requests. */
#include "analyze/live/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 64, PORT_MAX = 65535 };
static const char EXAMPLE[] = "write ADDRESS:PORT, such as 127.0.0.1:9464 or [::1]:9464";

/* Copies the host of HOST, HOST:PORT or [IPV6]:PORT without brackets. Returns the rest, from the colon on, or NULL. */
static const char *split(const char *text, char host[HOST_MAX])
{
    bool brackets = text[0] == '[';
    const char *from = text + brackets;
    size_t n = strcspn(from, brackets ? "]" : ":");
    if (n == 0 || n >= HOST_MAX || (brackets && from[n] != ']'))
        return NULL;
    memcpy(host, from, n);
    host[n] = '\0';
    return from + n + brackets;
}

static bool to_sockaddr(const char *host, int port, struct weir_http_address *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    host = strcasecmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
        address->loopback = (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
        memcpy(&address->sockaddr, &v4, address->size = sizeof v4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
        return false;
    address->loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    memcpy(&address->sockaddr, &v6, address->size = sizeof v6);
    return true;
}

/* Returns the port in ":PORT", or -1. */
static int port_of(const char *rest)
{
    char *end;
    if (rest[0] != ':' || strlen(rest) > 6 || rest[1 + strspn(rest + 1, "0123456789")] != '\0' || !rest[1])
        return -1;
    long port = strtol(rest + 1, &end, 10);
    return port <= PORT_MAX ? (int)port : -1;
}

int weir_http_address_parse(struct weir_http_address *address, const char *text, int port_offset, struct weir_err *err)
{
    char host[HOST_MAX];
    const char *rest = split(text, host);
    struct in6_addr v6;
    if (inet_pton(AF_INET6, text, &v6) == 1)
        return weir_err_set(err, -EINVAL, "%.100s: has no port; write [%.100s]:9464", text, text);
    if (rest && !*rest && to_sockaddr(host, 0, address))
        return weir_err_set(err, -EINVAL, "%.100s: has no port; write %.100s:9464", text, text);
    int port = rest ? port_of(rest) : -1;
    if (!rest || port < 0)
        return weir_err_set(err, -EINVAL, "\"%.100s\" is not an address with a port of 0..65535; %s", text, EXAMPLE);
    if (port > 0 && port + port_offset > PORT_MAX)
        return weir_err_set(err, -EINVAL, "%.100s: port %d, for local rank %d, exceeds 65535; use a smaller port", text,
                            port + port_offset, port_offset);
    if (!to_sockaddr(host, port > 0 ? port + port_offset : 0, address))
        return weir_err_set(err, -EINVAL, "%.100s: \"%.64s\" is not a numeric address or localhost; %s", text, host,
                            EXAMPLE);
    return 0;
}

bool weir_http_host_is_literal(const char *host)
{
    char name[HOST_MAX];
    struct weir_http_address address;
    const char *rest = split(host, name);
    return rest && (!*rest || port_of(rest) >= 0) && to_sockaddr(name, 0, &address);
}
