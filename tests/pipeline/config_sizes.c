/* Built with one version of weir/loader.h, and run with the library of another: config_sizes DATA [MORE]. Loads all
 * batches of DATA and prints "SIZE: N batches", or the error. If compiled with WEIR_MORE defined, sets the option that
 * only the longer struct contains to MORE. */
#include <weir/loader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct {
        struct weir_loader_config config;
        unsigned char beyond[256]; /* must remain unchanged, even by a library with a longer struct */
    } own;
    struct weir_loader *loader;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    int rc, batches = 0;
    memset(&own, 0xa5, sizeof own);
    weir_loader_config_default(&own.config);
    own.config.data = argv[1];
    own.config.batch_size = 4;
    own.config.num_workers = 2;
#ifdef WEIR_MORE
    if (argc > 2)
        own.config.more = atoi(argv[2]);
#else
    (void)argc;
#endif
    rc = weir_loader_open(&loader, &own.config, &err);
    while (rc >= 0 && (rc = weir_loader_next(loader, &batch, &err)) > 0) {
        weir_loader_release(loader, batch);
        batches++;
    }
    weir_loader_close(&loader);
    for (size_t i = 0; i < sizeof own.beyond; i++)
        if (own.beyond[i] != 0xa5) {
            printf("byte %zu after the struct was written\n", i);
            return 1;
        }
    if (rc < 0)
        printf("%d: %s\n", rc, err.text);
    else
        printf("%zu bytes: %d batches\n", own.config.size, batches);
    return rc < 0;
}
