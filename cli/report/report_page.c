#include "analyze/page/page.h"
#include "cli/outputs.h"
#include "cli/report/report_command.h"

#include <errno.h>
#include <string.h>

static int add_log(struct weir_page *page, const char *path, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    FILE *in;
    if (strcmp(path, "-") == 0)
        return weir_err_set(err, -EINVAL, "--html: standard input can be read only once; save the log to a file");
    int code = weir_report_open_log(path, &in, err);
    if (code == 0) {
        code = weir_page_add_log(page, path, in, &why);
        if (code < 0)
            weir_err_set(err, code, "%s: %s", path, why.text);
    }
    if (in)
        fclose(in);
    return code;
}

int weir_report_page(const char *html, const char *const *paths, int n, enum weir_lang lang,
                     const struct weir_report_ranks *ranks, struct weir_err *err)
{
    struct weir_page *page;
    FILE *out = NULL;
    int code = weir_page_open(&page, lang);
    if (code < 0)
        return weir_err_set(err, code, "out of memory");
    for (int i = 0; i < n && code == 0; i++)
        if (!weir_report_ranks_skips(ranks, i))
            code = add_log(page, paths[i], err);
    if (ranks->ranks.n > 0)
        weir_page_add_ranks(page, &ranks->ranks.verdict, ranks->ranks.ranks, ranks->ranks.n);
    if (code == 0)
        code = weir_output_open(&out, html, err);
    if (code == 0 && weir_page_write(out, page) < 0)
        code = weir_err_set(err, -ENOMEM, "%s: out of memory", html);
    int closed = weir_output_close(html, out, err);
    weir_page_close(&page);
    return code < 0 ? code : closed;
}
