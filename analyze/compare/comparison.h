/* comparison.h: compares a file with another one of its kind, row by row. */
#ifndef WEIR_ANALYZE_COMPARE_COMPARISON_H
#define WEIR_ANALYZE_COMPARE_COMPARISON_H

#include "analyze/compare/compared.h"
#include "analyze/compare/delta.h"
#include "base/document.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdio.h>

struct weir_comparison_row {
    const char *name; /* borrowed */
    struct weir_delta change;
    struct weir_delta fastest; /* of the fastest calls, which other processes delay least; unknown if the numbers of
                                  calls differ */
    bool small;                /* the stage takes less than 1 % of the time of the largest one on both sides */
};

struct weir_comparison {
    const struct weir_compared *before, *after; /* borrowed */
    struct weir_delta whole, wait;
    int n_rows;
    struct weir_comparison_row *rows; /* owned; the stages of both files, in the order of `before` */
    bool stages_differ;               /* the stages' times are per image in one file, per call in the other */
};

/* Returns 0, -ENOMEM, or -EINVAL with one line that says what the files are if they cannot be compared. The caller
 * frees *comparison, also after an error. */
int weir_comparison_make(struct weir_comparison *comparison, const struct weir_compared *before,
                         const struct weir_compared *after, struct weir_err *err);
void weir_comparison_free(struct weir_comparison *comparison);

/* Returns the fraction by which `after` is slower; negative = faster, NAN = unknown. Rates and times count alike. */
double weir_comparison_slower(const struct weir_comparison *comparison);

/* Describes the verdict, the tables, the settings that differ and the test. all: also small stages, for people. */
void weir_comparison_describe(struct weir_document *document, const struct weir_comparison *comparison, bool all);

#endif
