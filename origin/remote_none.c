/* A build without libcurl: no origin can be opened, so the other functions are never reached. */
#include "origin/remote.h"

#include <errno.h>
#include <stdio.h>

int weir_client_ready(struct weir_err *err)
{
    return weir_err_set(err, -ENOTSUP, "URLs cannot be read: built without libcurl; install it and build again");
}

bool weir_client_describe(char *text, size_t size)
{
    snprintf(text, size, "built without libcurl");
    return false;
}

int weir_remote_open(struct weir_origin **out, const char *url, const struct weir_remote_config *config,
                     struct weir_err *err)
{
    (void)url;
    (void)config;
    *out = NULL;
    return weir_client_ready(err);
}

void weir_remote_watch(struct weir_origin *origin, bool (*interrupted)(void *user), void *user)
{
    (void)origin;
    (void)interrupted;
    (void)user;
}

void weir_remote_identify_all(struct weir_origin *origin, char *const *paths, int n)
{
    (void)origin;
    (void)paths;
    (void)n;
}

int weir_remote_list(struct weir_origin *origin, const char *url, const struct weir_remote_search *search,
                     struct weir_err *err)
{
    (void)origin;
    (void)url;
    (void)search;
    return weir_client_ready(err);
}

void weir_remote_learn_below(struct weir_origin *origin, const char *url)
{
    (void)origin;
    (void)url;
}
