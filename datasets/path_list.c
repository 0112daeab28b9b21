#include "base/grow.h"
#include "datasets/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 10 * 1000 * 1000 };

int weir_path_list_add(struct weir_path_list *list, char *text)
{
    if (text && list->n < FILES_MAX && weir_grow(&list->paths, (size_t)list->n, sizeof *list->paths)) {
        list->paths[list->n++] = text;
        return 0;
    }
    int rc = list->n < FILES_MAX ? -ENOMEM : -EFBIG;
    free(text);
    return rc;
}

/* Compares sequences of digits by value, so that episode_10 follows episode_9. */
static int by_version(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    int order = strverscmp(left, right);
    return order ? order : strcmp(left, right);
}

void weir_path_list_sort(struct weir_path_list *list)
{
    if (list->n > 1)
        qsort(list->paths, (size_t)list->n, sizeof *list->paths, by_version);
}

void weir_path_list_free(struct weir_path_list *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct weir_path_list){0};
}
