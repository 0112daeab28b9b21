#include "base/grow.h"
#include "base/text.h"
#include "datasets/index.h"

#include <errno.h>
#include <stdio.h>
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

void weir_path_list_sort_bytes(struct weir_path_list *list)
{
    if (list->n > 1)
        qsort(list->paths, (size_t)list->n, sizeof *list->paths, weir_compare_text_pointer);
}

int weir_path_list_lower_bound(const struct weir_path_list *sorted, const char *text)
{
    return WEIR_FIRST(i, sorted->n, strcmp(sorted->paths[i], text) >= 0);
}

/* ---- older copies ---- */

static const char old_mark[] = "_old";

/* Returns whether a sorted list contains a path that begins with this text, or that is this text if `whole`. */
static bool has_path(const struct weir_path_list *sorted, const char *text, bool whole)
{
    int low = weir_path_list_lower_bound(sorted, text);
    return low < sorted->n && strncmp(sorted->paths[low], text, strlen(text) + whole) == 0;
}

/* Returns the length of the first part of a path, after `root` bytes, that is NAME_old or NAME_old.EXTENSION, if the
 * sorted list has NAME or NAME.EXTENSION, which is written to `newer`; otherwise 0. */
static size_t old_part(const struct weir_path_list *sorted, const char *path, size_t root, char *newer, size_t size)
{
    for (const char *at = strstr(path + root, old_mark); at; at = strstr(at + 1, old_mark)) {
        const char *after = at + strlen(old_mark);
        size_t extension = strcspn(after, "/");
        if (at == path || at[-1] == '/' || (extension > 0 && *after != '.'))
            continue;
        int n = snprintf(newer, size, "%.*s%.*s/", (int)(at - path), path, (int)extension, after);
        bool found = n < (int)size && has_path(sorted, newer, false);
        newer[n < (int)size ? n - 1 : 0] = '\0';
        if (found || has_path(sorted, newer, true))
            return (size_t)(after - path) + extension;
    }
    return 0;
}

static bool any_is_marked(const struct weir_path_list *list, size_t root)
{
    bool any = false;
    for (int i = 0; i < list->n && !any; i++)
        any = strstr(list->paths[i] + root, old_mark) != NULL;
    return any;
}

static char *reason_of(const char *path, size_t length, const char *newer)
{
    char *text;
    int n = asprintf(&text,
                     "%.*s: its name is that of an older copy of %s, so episodes could be loaded twice; choose one of "
                     "them, or rename it",
                     (int)length, path, newer);
    return n < 0 ? NULL : text;
}

int weir_path_list_leave_out_old(struct weir_path_list *list, const char *folder, struct weir_path_list *left_out)
{
    enum { PATH_BYTES = 4096 };
    char newer[PATH_BYTES], *last = NULL; /* the part whose reason was added last */
    if (!any_is_marked(list, strlen(folder)))
        return 0;
    struct weir_path_list sorted = {calloc((size_t)list->n + 1, sizeof *sorted.paths), list->n};
    bool *old = calloc((size_t)list->n + 1, sizeof *old);
    int kept = 0, rc = sorted.paths && old ? 0 : -ENOMEM;
    if (rc == 0) {
        memcpy(sorted.paths, list->paths, (size_t)list->n * sizeof *sorted.paths);
        weir_path_list_sort_bytes(&sorted);
    }
    for (int i = 0; i < list->n && rc == 0; i++) {
        const char *path = list->paths[i];
        size_t n = old_part(&sorted, path, strlen(folder), newer, sizeof newer);
        old[i] = n > 0;
        if (n > 0 && !(last && strncmp(last, path, n) == 0 && last[n] == ':'))
            rc = weir_path_list_add(left_out, last = reason_of(path, n, newer));
    }
    for (int i = 0; i < list->n && rc == 0; i++) {
        if (old[i])
            free(list->paths[i]);
        else
            list->paths[kept++] = list->paths[i];
    }
    list->n = rc == 0 ? kept : list->n;
    free(old);
    free(sorted.paths);
    return rc;
}

void weir_path_list_free(struct weir_path_list *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct weir_path_list){0};
}
