#include "analyze/trials/measured_run.h"

#include "analyze/trials/child.h"
#include "analyze/trials/words.h"

#include <errno.h>
#include <string.h>

int weir_measured_run(struct weir_measured_run *run, const struct weir_measured_run_config *config,
                      struct weir_err *err)
{
    struct weir_words words = {0};
    struct weir_child child = {0};
    memset(run, 0, sizeof *run);
    weir_words_add(&words, "weir");
    weir_words_add(&words, "run");
    weir_words_add_all(&words, config->args);
    weir_words_add_measured(&words, config->seconds);
    const struct weir_child_config command = {.program = config->program ? config->program : "/proc/self/exe",
                                              .argv = words.argv,
                                              .seconds = config->patience_s,
                                              .interrupted = config->interrupted};
    int rc = words.failed ? weir_err_set(err, -ENOMEM, "out of memory") : weir_child_run(&child, &command, err);
    if (config->interrupted && *config->interrupted) /* Ctrl-C also reached the child, which ended early */
        rc = weir_err_set(err, -EINTR, "interrupted");
    if (rc == 0)
        rc = weir_trial_parse(&run->trial, &run->record_, child.output, child.length, err);
    weir_child_free(&child);
    weir_words_free(&words);
    if (rc < 0)
        weir_measured_run_clear(run);
    return rc;
}

const struct weir_loader_report *weir_measured_report(const struct weir_measured_run *run)
{
    return &run->record_.report;
}

void weir_measured_run_clear(struct weir_measured_run *run)
{
    weir_log_record_clear(&run->record_);
    memset(run, 0, sizeof *run);
}
