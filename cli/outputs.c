#include "cli/outputs.h"
#include "analyze/page/page.h"
#include "base/files.h"
#include "base/shortage.h"
#include "origin/url.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USES_MAX = 256 };

/* A file or folder given on the command line. */
struct use {
    char label[96];             /* how errors refer to it, such as "--log" */
    const struct weir_opt *opt; /* NULL for an argument or a standard stream */
    const char *path;
    char *resolved; /* owned; path with all links resolved; NULL for a standard stream */
    enum weir_opt_path how;
    bool there, known, no_memory;
    struct stat st;       /* of the file, or of its nearest existing parent folder */
    const char *new_name; /* path relative to that folder; NULL if the file exists */
};

struct uses {
    struct use at[USES_MAX];
    int n;
};

/* ---- collecting ---- */

/* Normalises a path in place, such as "a//./b" to "a/b". */
static void squeeze(char *path)
{
    char *to = path;
    for (const char *from = path; *from; from++) {
        bool begins = to == path || to[-1] == '/';
        if (*from == '/' && to > path && to[-1] == '/')
            continue;
        if (begins && from[0] == '.' && from[1] == '/')
            from++;
        else
            *to++ = *from;
    }
    *to = '\0';
}

/* Finds the file or its nearest existing parent folder. resolved remains NULL for a loop of symbolic links, which
 * cannot be opened later either. */
static void identify(struct use *use)
{
    use->resolved = weir_output_resolve(use->path);
    use->no_memory = !use->resolved && errno == ENOMEM;
    if (!use->resolved)
        return;
    use->there = use->known = stat(use->path, &use->st) == 0;
    if (use->there)
        return;
    squeeze(use->resolved);
    char *at = use->resolved + strlen(use->resolved);
    while (!use->known && at > use->resolved) {
        char kept;
        do
            at--;
        while (at > use->resolved && at[-1] != '/');
        kept = *at;
        *at = '\0';
        use->known = stat(*use->resolved ? use->resolved : ".", &use->st) == 0;
        *at = kept;
    }
    use->new_name = at;
}

static struct use *add_entry(struct uses *uses, enum weir_opt_path how, const char *path)
{
    assert(uses->n < USES_MAX); /* no command has this many options and arguments */
    struct use *use = &uses->at[uses->n++];
    *use = (struct use){.path = path, .how = how};
    return use;
}

static struct use *add(struct uses *uses, enum weir_opt_path how, const char *path)
{
    if (how == WEIR_PATH_NONE || !path || !*path)
        return NULL;
    struct use *use = add_entry(uses, how, path);
    identify(use);
    return use;
}

static void add_option(struct uses *uses, const struct weir_opt *opt, const void *values)
{
    const char *value = opt->kind == WEIR_OPT_TEXT ? *(const char *const *)((const char *)values + opt->offset) : NULL;
    struct use *use = add(uses, opt->path, value);
    if (!use)
        return;
    use->opt = opt;
    snprintf(use->label, sizeof use->label, "--%s", opt->name);
}

static void add_argument(struct uses *uses, enum weir_opt_path how, const char *arg)
{
    struct use *use = add(uses, how, arg);
    if (!use)
        return;
    snprintf(use->label, sizeof use->label, how == WEIR_PATH_READ ? "the input" : "the output");
    if (how == WEIR_PATH_READ && !use->there && strcmp(arg, "-") == 0)
        use->there = use->known = fstat(STDIN_FILENO, &use->st) == 0;
}

static void add_stream(struct uses *uses, int fd, const char *label)
{
    struct use *use = add_entry(uses, WEIR_PATH_WRITE, "-");
    snprintf(use->label, sizeof use->label, "%s", label);
    use->there = use->known = fstat(fd, &use->st) == 0 && S_ISREG(use->st.st_mode);
}

static void clear(struct uses *uses)
{
    for (int i = 0; i < uses->n; i++)
        free(uses->at[i].resolved);
}

/* ---- comparing ---- */

static bool is_same(const struct use *a, const struct use *b)
{
    if (!a->known || !b->known || a->st.st_dev != b->st.st_dev || a->st.st_ino != b->st.st_ino)
        return false;
    if (a->new_name && b->new_name)
        return strcmp(a->new_name, b->new_name) == 0;
    return !a->new_name && !b->new_name;
}

/* Returns whether both uses may refer to the same file. Inputs may share a file, and so may folders. Readers and
 * writers may share a device. Writers may share a pipe. */
static bool may_share(const struct use *a, const struct use *b)
{
    bool both_write = a->how != WEIR_PATH_READ && b->how != WEIR_PATH_READ;
    if (a->how == b->how && (a->how == WEIR_PATH_READ || a->how == WEIR_PATH_WRITE_INTO))
        return true;
    return a->there && (S_ISCHR(a->st.st_mode) || (both_write && S_ISFIFO(a->st.st_mode)));
}

static bool is_into_input(const struct use *a, const struct use *b)
{
    return a->how == WEIR_PATH_WRITE_INTO && b->how == WEIR_PATH_READ && a->there && S_ISDIR(a->st.st_mode);
}

/* Returns whether other is one of the files that the command writes to the folder. */
static bool is_file_of(const struct use *folder, const struct use *other)
{
    for (const char *at = folder->opt->files; at && *at; at += strcspn(at, " "), at += *at == ' ') {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%.*s", folder->resolved, (int)strcspn(at, " "), at);
        struct use file = {.path = path, .how = WEIR_PATH_WRITE};
        identify(&file);
        bool same = is_same(&file, other);
        free(file.resolved);
        if (same)
            return true;
    }
    return false;
}

static bool is_inside(const struct use *output, const struct use *input)
{
    return output->how == WEIR_PATH_WRITE_DATA && input->how == WEIR_PATH_READ && input->there &&
           S_ISDIR(input->st.st_mode) && weir_output_is_inside(output->path, input->st.st_dev, input->st.st_ino);
}

static int compare(const struct use *output, const struct use *other, struct weir_err *err)
{
    if (is_inside(output, other))
        return weir_err_set(err, -EINVAL,
                            "%s: %s is inside %s and would be read as part of it; choose a path "
                            "outside it",
                            output->path, output->label, other->path);
    if (!is_same(output, other) || may_share(output, other) || is_into_input(output, other))
        return 0;
    if (!other->resolved)
        return weir_err_set(err, -EINVAL, "%s: %s and %s are the same file; choose another file for %s", output->path,
                            output->label, other->label, output->label);
    return weir_err_set(err, -EINVAL, "%s: %s and %s name the same file; choose a different file for each",
                        output->path, other->label, output->label);
}

static int check_all(const struct uses *uses, struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < uses->n && rc == 0; i++)
        rc = uses->at[i].no_memory ? weir_err_set(err, -ENOMEM, "out of memory") : 0;
    for (int i = 0; i < uses->n && rc == 0; i++) {
        const struct use *output = &uses->at[i];
        if (output->how != WEIR_PATH_READ && weir_url_is(output->path))
            return weir_err_set(err, -EINVAL,
                                "%s: %s is a URL, but only files on this machine can be written; choose one",
                                output->path, output->label);
        if (output->how == WEIR_PATH_READ || !output->resolved)
            continue;
        for (int k = 0; k < uses->n && rc == 0; k++)
            if (k < i || uses->at[k].how == WEIR_PATH_READ || !uses->at[k].resolved)
                rc = k == i ? 0 : compare(output, &uses->at[k], err);
    }
    return rc;
}

static int check_files(const struct uses *uses, struct weir_err *err)
{
    for (int i = 0; i < uses->n; i++)
        for (int k = 0; k < uses->n; k++) {
            const struct use *folder = &uses->at[i], *other = &uses->at[k];
            if (folder->opt && folder->resolved && is_file_of(folder, other))
                return weir_err_set(err, -EINVAL, "%s: %s names a file that %s writes; choose another path",
                                    other->path, other->label, folder->label);
        }
    return 0;
}

int weir_outputs_check(const struct weir_command *command, const void *values, const char *const *args, int n_args,
                       const char *config, struct weir_err *err)
{
    struct uses uses;
    uses.n = 0; /* add_entry initialises each entry */
    for (struct weir_opt_walk walk = {.command = command}; weir_opt_next(&walk);)
        add_option(&uses, walk.opt, (const char *)values + walk.at);
    add_option(&uses, &weir_opt_config, &(const void *){config});
    for (int i = 0; i < n_args; i++)
        add_argument(&uses, command->arg_paths[i > 0], args[i]);
    add_stream(&uses, STDOUT_FILENO, "standard output");
    add_stream(&uses, STDERR_FILENO, "standard error");
    int rc = check_all(&uses, err);
    if (rc == 0)
        rc = check_files(&uses, err);
    clear(&uses);
    return rc;
}

int weir_outputs_spare(const struct weir_command *command, const void *values, const struct weir_dataset *dataset,
                       struct weir_err *err)
{
    int rc = 0;
    for (struct weir_opt_walk walk = {.command = command}; rc == 0 && weir_opt_next(&walk);) {
        const struct weir_opt *opt = walk.opt;
        bool is_folder = opt->path == WEIR_PATH_WRITE_INTO;
        const char *path = is_folder || opt->path == WEIR_PATH_WRITE
                               ? *(const char *const *)((const char *)values + walk.at + opt->offset)
                               : NULL;
        char inside[PATH_MAX];
        if (!path || !*path)
            continue;
        snprintf(inside, sizeof inside, "%s%s", path, is_folder ? "/." : "");
        rc = weir_dataset_spare(dataset, inside, err);
    }
    return rc;
}

/* ---- opening ---- */

int weir_output_folder(const char *folder, const char *what, struct weir_err *err)
{
    char path[PATH_MAX];
    int rc = weir_folders_make(folder);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s cannot be created: %s; choose another folder", folder, what,
                            strerror(-rc));
    snprintf(path, sizeof path, "%s/.weir-XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: %s cannot be written: %s; choose another folder", folder, what,
                            strerror(errno));
    close(fd);
    unlink(path);
    return 0;
}

int weir_output_open(FILE **file, const char *path, struct weir_err *err)
{
    *file = path ? weir_output_file(path) : NULL;
    if (*file || !path)
        return 0;
    int code = errno;
    return weir_err_set(err, -code, "%s: cannot be written: %s; %s", path, strerror(code), weir_write_advice(-code));
}

int weir_output_close(const char *path, FILE *file, struct weir_err *err)
{
    if (file && weir_file_close(file) < 0)
        return weir_err_set(err, -EIO, "%s: not written completely; is the disk full?", path);
    return 0;
}

/* ---- pages ---- */

int weir_output_page_open(struct weir_output_page *page, const char *path, struct weir_err *err)
{
    *page = (struct weir_output_page){0};
    int rc = weir_output_open(&page->file_, path, err);
    if (rc < 0 || !path)
        return rc;
    page->json = open_memstream(&page->text_, &page->size_);
    return page->json ? 0 : weir_err_set(err, -ENOMEM, "%s: out of memory", path);
}

int weir_output_page_close(struct weir_output_page *page, const char *path, struct weir_err *err)
{
    struct weir_err why = WEIR_ERR_NONE;
    bool failed = page->json && fclose(page->json) != 0;
    int rc = failed ? -ENOMEM : 0;
    if (page->json && !failed && page->size_ > 0)
        rc = weir_page_of_result(page->file_, page->text_, page->size_, &why);
    if (rc < 0)
        weir_err_set(err, rc, "%s: the page cannot be made: %s", path, why.code < 0 ? why.text : strerror(-rc));
    int closed = weir_output_close(path, page->file_, err);
    free(page->text_);
    *page = (struct weir_output_page){0};
    return rc < 0 ? rc : closed;
}
