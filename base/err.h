/* err.h: one line with what went wrong, where, and what to do.
 *
 * Calls return 0 or a positive count when fine and -errno when not. Calls that can fail in many ways also take a
 * struct weir_err; the first error set is kept, later ones are dropped. Thread rule: one weir_err, one thread. */
#ifndef WEIR_BASE_ERR_H
#define WEIR_BASE_ERR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_err {
    int code;        /* 0 = none, else -errno (EBADMSG corrupt data, ENODATA short file, ENOTSUP not built, ...) */
    char text[1024]; /* one line, no newline at the end */
};

#ifdef __cplusplus
#define WEIR_ERR_NONE (weir_err())
#else
#define WEIR_ERR_NONE ((struct weir_err){0})
#endif

/* Sets the error if none is set yet (err may be NULL) and returns code. Control characters in the text become '?', so
 * that hostile names cannot break the line. */
int weir_err_set(struct weir_err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " in front of an error that is set; does nothing when none is. */
void weir_err_prefix(struct weir_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif
