/* Searches a folder for episodes. fts(3) is unsuitable, because it treats a failing readdir as the end of the folder:
 * part of a dataset would be missing without an error. */
#include "base/text.h"
#include "datasets/format_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 16 /* an error message contains this number */ };

/* Kinds of files in LeRobot datasets. Errors mention them if no dataset is found. */
enum { FOREIGN_PARQUET, FOREIGN_MP4, FOREIGN };

/* Names of files of formats that are not read. */
static const char *const others[] = {".arrow", ".bag", ".db3", ".jpg", ".mcap", ".npy", ".npz", ".pkl", ".png", ".tar"};
enum { OTHERS = sizeof others / sizeof others[0] };

struct walk {
    struct weir_path_list files, left_out;
    char *partial; /* path of the first unfinished copy, which is skipped; owned; NULL = none */
    struct weir_err *err;
    bool foreign[FOREIGN]; /* which kinds of foreign files were found */
    bool other[OTHERS];
    struct {
        dev_t device;
        ino_t inode;
    } above[DEPTH_MAX + 1]; /* open folders, outermost first */
};

static bool is_episode(const char *name)
{
    return weir_format_of(name) != NULL;
}

static void note_foreign(struct walk *walk, const char *name)
{
    const char *dot = strrchr(name, '.');
    walk->foreign[FOREIGN_PARQUET] |= dot && strcmp(dot, ".parquet") == 0;
    walk->foreign[FOREIGN_MP4] |= dot && strcmp(dot, ".mp4") == 0;
    for (int i = 0; i < OTHERS && dot; i++)
        walk->other[i] |= strcmp(dot, others[i]) == 0;
}

/* A lack of memory or descriptors is not the dataset's fault, so it ends the search even with --on-error skip. */
static bool is_ours(int code)
{
    return code == ENOMEM || code == EMFILE || code == ENFILE;
}

static int leave_out(struct walk *walk, const char *path, int code, const char *what)
{
    char *text;
    if (is_ours(code))
        return weir_err_set(walk->err, -code, "%s: %s: %s", path, what, strerror(code));
    int n = code ? asprintf(&text, "%s: %s: %s", path, what, strerror(code)) : asprintf(&text, "%s: %s", path, what);
    return weir_path_list_add(&walk->left_out, n < 0 ? NULL : text);
}

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFIFO:
        return "is a FIFO, not a regular file; move it away";
    case S_IFSOCK:
        return "is a socket, not a regular file; move it away";
    default:
        return "is a device, not a regular file; move it away";
    }
}

static int walk_folder(struct walk *walk, int parent, const char *name, const char *path, int depth);

/* Adds a path that is not a folder to the list of files if it is an episode; otherwise frees it. */
static int take_file(struct walk *walk, char *path, const char *name, mode_t mode)
{
    if (is_episode(name) && S_ISREG(mode))
        return weir_path_list_add(&walk->files, path);
    int rc = is_episode(name) ? leave_out(walk, path, 0, kind_of(mode)) : 0;
    free(path);
    return rc;
}

/* Handles an entry for which stat fails. If it has an episode's name, it is listed, and opening it fails later. Other
 * entries may be dangling links to folders of episodes, so they are reported. */
static int take_unknown(struct walk *walk, char *path, const char *name, int code)
{
    if (is_episode(name) && !is_ours(code))
        return weir_path_list_add(&walk->files, path);
    int rc = leave_out(walk, path, code,
                       "cannot be followed, but may lead to episodes; repair or remove it, or correct its permissions");
    free(path);
    return rc;
}

static int take_entry(struct walk *walk, DIR *folder, const struct dirent *entry, const char *above, int depth)
{
    const char *name = entry->d_name;
    struct stat st;
    char *path;
    note_foreign(walk, name);
    bool no_matter = entry->d_type == DT_REG || entry->d_type == DT_FIFO || entry->d_type == DT_SOCK ||
                     entry->d_type == DT_CHR || entry->d_type == DT_BLK;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (no_matter && !is_episode(name)))
        return 0;
    size_t length = strlen(above);
    if (asprintf(&path, "%s%s%s", above, length && above[length - 1] == '/' ? "" : "/", name) < 0)
        return -ENOMEM;
    if (fstatat(dirfd(folder), name, &st, 0) != 0)
        return take_unknown(walk, path, name, errno);
    if (!S_ISDIR(st.st_mode))
        return take_file(walk, path, name, st.st_mode);
    int rc = walk_folder(walk, dirfd(folder), name, path, depth + 1);
    free(path);
    return rc;
}

static int walk_entries(struct walk *walk, DIR *folder, const char *path, int depth)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry)
            return errno == 0 ? 0 : leave_out(walk, path, errno, "folder cannot be read to its end");
        int rc = take_entry(walk, folder, entry, path, depth);
        if (rc < 0)
            return rc;
    }
}

/* Returns true for a link back to a folder that is already being searched; its episodes are found there. */
static bool is_above(struct walk *walk, const struct stat *st, int depth)
{
    for (int i = 0; i < depth; i++)
        if (walk->above[i].device == st->st_dev && walk->above[i].inode == st->st_ino)
            return true;
    return false;
}

/* Returns true for a folder NAME.partial that contains state.json: a copy that weir convert is writing, or an
 * interrupted copy. */
static bool is_partial(int folder, const char *name)
{
    return weir_text_ends(name, ".partial") && faccessat(folder, "state.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- the Hub's cache ---- */

/* Returns true for the folder "snapshots" of the Hub's cache, which contains revisions of one dataset. The file
 * "refs/main" beside it names the newest. */
static bool has_revisions(int folder, const char *path)
{
    static const char name[] = "snapshots", *const above[] = {"datasets--", "models--"};
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    if (end < strlen(name) || strncmp(path + end - strlen(name), name, strlen(name)) != 0)
        return false;
    size_t at = end > strlen(name) ? end - strlen(name) - 1 : 0; /* where the name of the folder above it ends */
    while (at > 0 && path[at - 1] != '/')
        at--;
    bool named = faccessat(folder, "../refs", F_OK, 0) == 0 && faccessat(folder, "../blobs", F_OK, 0) == 0;
    for (size_t i = 0; i < sizeof above / sizeof *above && !named; i++)
        named = strncmp(path + at, above[i], strlen(above[i])) == 0;
    return named;
}

/* Lists the names of the revisions. Returns 0 or a negative code. */
static int list_revisions(int snapshots, struct weir_path_list *names)
{
    DIR *folder = fdopendir(dup(snapshots));
    int rc = folder ? 0 : -errno;
    for (const struct dirent *entry; rc == 0 && (entry = readdir(folder));) {
        struct stat st;
        if (entry->d_name[0] != '.' && fstatat(snapshots, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode))
            rc = weir_path_list_add(names, strdup(entry->d_name));
    }
    if (folder)
        closedir(folder);
    weir_path_list_sort(names);
    return rc;
}

/* Returns the revision that refs/main names, if it is in the list. */
static const char *main_revision(int snapshots, const struct weir_path_list *names)
{
    char text[NAME_MAX + 1] = "";
    int fd = openat(snapshots, "../refs/main", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? strcspn(text, " \r\n") : 0] = '\0';
    for (int i = 0; i < names->n; i++)
        if (strcmp(names->paths[i], text) == 0)
            return names->paths[i];
    return NULL;
}

static int leave_out_revisions(struct walk *walk, const char *path, const struct weir_path_list *names)
{
    char text[512];
    int n = snprintf(
        text, sizeof text,
        "contains %d revisions of one dataset, and refs/main names none of them; choose one of its folders:", names->n);
    for (int i = 0; i < names->n && n < (int)sizeof text / 2; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %.80s", i ? "," : "", names->paths[i]);
    return leave_out(walk, path, 0, text);
}

/* Searches one of the revisions in an open folder. */
static int walk_revisions(struct walk *walk, int snapshots, const char *path, int depth)
{
    struct weir_path_list names = {0};
    char *inner = NULL;
    int rc = list_revisions(snapshots, &names);
    const char *name = names.n == 1 ? names.paths[0] : main_revision(snapshots, &names);
    if (rc == 0 && names.n > 1 && !name)
        rc = leave_out_revisions(walk, path, &names);
    else if (rc == 0 && name)
        rc = asprintf(&inner, "%s/%s", path, name) < 0 ? -ENOMEM : walk_folder(walk, snapshots, name, inner, depth + 1);
    free(inner);
    weir_path_list_free(&names);
    return rc;
}

/* ---- folders ---- */

static int walk_folder(struct walk *walk, int parent, const char *name, const char *path, int depth)
{
    struct stat st;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    bool enter = fd >= 0 && fstat(fd, &st) == 0;
    int rc = enter ? 0 : leave_out(walk, path, errno, "folder cannot be read");
    enter = enter && !is_above(walk, &st, depth <= DEPTH_MAX ? depth : DEPTH_MAX + 1);
    if (enter && depth > DEPTH_MAX) {
        rc = leave_out(walk, path, 0, "lies more than 16 folders deep; choose a folder closer to the episodes");
        enter = false;
    }
    if (enter && depth > 0 && is_partial(fd, name)) {
        if (!walk->partial)
            walk->partial = strdup(path);
        enter = false;
    }
    if (enter && weir_format_of_folder(fd, path)) { /* the folder as a whole is a dataset, so it is not searched */
        close(fd);
        return weir_path_list_add(&walk->files, strdup(path));
    }
    if (enter) {
        walk->above[depth].device = st.st_dev;
        walk->above[depth].inode = st.st_ino;
    }
    if (enter && has_revisions(fd, path)) {
        rc = walk_revisions(walk, fd, path, depth);
        enter = false;
    }
    DIR *folder = enter ? fdopendir(fd) : NULL;
    if (enter && !folder)
        rc = leave_out(walk, path, errno, "folder cannot be read");
    if (folder) {
        rc = walk_entries(walk, folder, path, depth);
        closedir(folder); /* also closes fd */
    } else if (fd >= 0) {
        close(fd);
    }
    return rc;
}

static int nothing_found(const struct walk *walk, const char *path, bool is_folder, struct weir_err *err)
{
    bool parquet = walk->foreign[FOREIGN_PARQUET], mp4 = walk->foreign[FOREIGN_MP4];
    if (walk->left_out.n > 0)
        return weir_err_set(err, -ENOENT, "%s: none of the episode files can be reached: %s", path,
                            walk->left_out.paths[0]);
    if (walk->partial)
        return weir_err_set(err, -ENOENT,
                            "%s: no episode files except those of an unfinished copy, %s; run that weir convert again, "
                            "or wait until it ends",
                            path, walk->partial);
    if ((parquet || mp4) && !is_folder)
        return weir_err_set(err, -ENOENT,
                            "%s: is a %s file; choose the folder of its LeRobot dataset, which contains meta/info.json",
                            path, parquet ? "Parquet" : "MP4");
    if (parquet || mp4)
        return weir_err_set(err, -ENOENT,
                            "%s: no episode files, but %s%s%s files; if it is a LeRobot dataset, its meta/info.json or "
                            "its list of episodes is missing: copy it completely",
                            path, parquet ? "Parquet" : "", parquet && mp4 ? " and " : "", mp4 ? "MP4" : "");
    char found[128] = "";
    for (int i = 0; i < OTHERS; i++)
        if (walk->other[i])
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", *found ? ", " : ", but files *",
                     others[i]);
    return weir_err_set(err, -ENOENT,
                        "%s: no episode files (HDF5, TFRecord, Zarr, LMDB, packed, LeRobot) in this folder%s; %s", path,
                        found,
                        *found ? "convert them to one of these formats, or choose the folder that contains the episodes"
                               : "choose the folder that contains the episodes");
}

int weir_scan(const char *path, struct weir_path_list *files, struct weir_path_list *left_out, struct weir_err *err)
{
    struct walk walk = {.err = err};
    struct stat st;
    *files = *left_out = (struct weir_path_list){0};
    if (!*path)
        return weir_err_set(err, -ENOENT, "the path is empty; specify the folder that contains the episodes");
    if (stat(path, &st) != 0)
        return weir_err_set(err, -errno, "%s: %s; specify the folder that contains the episodes", path,
                            strerror(errno));
    if (!S_ISDIR(st.st_mode))
        note_foreign(&walk, path);
    bool foreign = walk.foreign[FOREIGN_PARQUET] || walk.foreign[FOREIGN_MP4];
    int rc = S_ISDIR(st.st_mode) ? walk_folder(&walk, AT_FDCWD, path, path, 0)
             : foreign           ? 0
                                 : weir_path_list_add(&walk.files, strdup(path));
    weir_path_list_sort(&walk.files);
    weir_path_list_sort(&walk.left_out);
    if (rc == 0 && walk.files.n == 0)
        rc = nothing_found(&walk, path, S_ISDIR(st.st_mode), err);
    free(walk.partial);
    if (rc < 0) {
        weir_path_list_free(&walk.files);
        weir_path_list_free(&walk.left_out);
        return weir_err_set(err, rc, "%s: the folder cannot be searched: %s", path, strerror(-rc));
    }
    *files = walk.files;
    *left_out = walk.left_out;
    return 0;
}
