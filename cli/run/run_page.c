#include "analyze/page/page.h"
#include "cli/outputs.h"
#include "cli/run/run_session.h"

#include <errno.h>
#include <string.h>

/* The log is flushed at once, like without a page, so that a run that is killed leaves a readable log. */
static ssize_t write_both(void *cookie, const char *bytes, size_t n)
{
    const struct weir_run_page *page = cookie;
    bool written = fwrite(bytes, 1, n, page->lines) == n;
    if (page->log)
        written &= fwrite(bytes, 1, n, page->log) == n && fflush(page->log) == 0;
    return written ? (ssize_t)n : -1;
}

int weir_run_page_open(struct weir_run_page *page, const char *path, FILE **log, struct weir_err *err)
{
    if (!path)
        return 0;
    int rc = weir_output_open(&page->html, path, err);
    if (rc < 0)
        return rc;
    page->log = *log;
    page->lines = tmpfile();
    page->both_ = page->lines ? fopencookie(page, "w", (cookie_io_functions_t){.write = write_both}) : NULL;
    if (!page->both_)
        return weir_err_set(err, -errno, "--html: cannot make a temporary file: %s", strerror(errno));
    *log = page->both_;
    return 0;
}

int weir_run_page_detach(struct weir_run_page *page, FILE **log)
{
    if (!page->both_)
        return 0;
    bool failed = ferror(page->both_);
    failed |= fclose(page->both_) != 0;
    page->both_ = NULL;
    *log = page->log;
    return failed ? -EIO : 0;
}

static int write_page(struct weir_run_page *page, const char *path, enum weir_lang lang, struct weir_err *err)
{
    struct weir_page *content = NULL;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_page_open(&content, lang);
    rewind(page->lines);
    if (rc == 0)
        rc = weir_page_add_log(content, "", page->lines, &why);
    if (rc == 0)
        rc = weir_page_write(page->html, content);
    weir_page_close(&content);
    if (rc == -ENODATA) /* the run failed before its first line */
        return 0;
    if (rc < 0)
        return weir_err_set(err, rc, "%s: the page cannot be made: %s", path, why.code < 0 ? why.text : strerror(-rc));
    return 0;
}

int weir_run_page_close(struct weir_run_page *page, const char *path, enum weir_lang lang, struct weir_err *err)
{
    int rc = page->html && page->lines ? write_page(page, path, lang, err) : 0;
    int close_rc = weir_output_close(path, page->html, err);
    if (page->lines)
        fclose(page->lines);
    *page = (struct weir_run_page){0};
    return rc < 0 ? rc : close_rc;
}
