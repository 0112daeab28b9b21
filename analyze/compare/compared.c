#include "analyze/compare/compared.h"
#include "analyze/compare/compared_priv.h"
#include "analyze/logs/log_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int read_log(struct weir_compared *compared, FILE *in, struct weir_err *err)
{
    struct weir_lines lines;
    weir_lines_open(&lines, in);
    const char *unread = weir_log_unread(&lines);
    int code = 0;
    if (unread && strcmp(unread, "output of --json") != 0)
        code = weir_err_set(err, -EINVAL, "%s is %s, which compares its runs itself; weir report prints it",
                            compared->path, unread);
    else if (unread && fseek(in, 0, SEEK_SET) < 0)
        code = weir_err_set(err, -errno, "%s: output of --json cannot be read from a pipe; specify a file",
                            compared->path);
    else if (unread)
        code = weir_compared_json(compared, in, err);
    else if (weir_lines_peek(&lines) > 0 && weir_log_recognised(lines.text, lines.length))
        code = weir_compared_records(compared, &lines, err);
    else
        code = weir_compared_plain(compared, &lines, err);
    weir_lines_close(&lines);
    return code;
}

int weir_compared_read(struct weir_compared *compared, const char *path, FILE *in, struct weir_err *err)
{
    weir_compared_begin(compared, path);
    int code = in ? read_log(compared, in, err) : weir_compared_trace(compared, err);
    if (code == -ENOMEM)
        return weir_err_set(err, code, "%s: out of memory", path);
    if (code == 0 && compared->whole.n == 0 && compared->n_stages == 0)
        return weir_err_set(err, -ENODATA, "%s is %s without measurements: %s", path, compared->what,
                            "nothing in it can be compared");
    return code;
}
