/* What the writers of all formats have in common. */
#include "datasets/writer.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int weir_writer_open(struct weir_writer **out, const struct weir_writer_ops *ops, const struct weir_copy *copy,
                     const char *path, int *complete, struct weir_err *err)
{
    struct weir_writer *writer = calloc(1, ops->bytes);
    char *copied = strdup(path);
    *out = NULL;
    *complete = 0;
    if (!writer || !copied) {
        free(writer);
        free(copied);
        return weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    }
    *writer = (struct weir_writer){.ops = ops, .copy = *copy, .path = copied};
    int rc = ops->open(writer, complete, err);
    if (rc < 0)
        weir_writer_close(&writer);
    *out = writer;
    return rc;
}

int weir_writer_begin(struct weir_writer *writer, const struct weir_copy_episode *episode, struct weir_err *err)
{
    writer->episode = *episode;
    return writer->ops->begin ? writer->ops->begin(writer, err) : 0;
}

int weir_writer_finish(struct weir_writer **writer, struct weir_err *err)
{
    int rc = (*writer)->ops->finish ? (*writer)->ops->finish(*writer, err) : 0;
    weir_writer_close(writer);
    return rc;
}

void weir_writer_close(struct weir_writer **writer)
{
    if (!*writer)
        return;
    (*writer)->ops->close(*writer);
    free((*writer)->path);
    free(*writer);
    *writer = NULL;
}

int weir_writer_no_memory(const struct weir_writer *writer, struct weir_err *err)
{
    return weir_err_set(err, -ENOMEM, "%s: out of memory", writer->path);
}

int weir_writer_make_folder(const struct weir_writer *writer, struct weir_err *err)
{
    if (mkdir(writer->path, 0777) == 0 || errno == EEXIST)
        return 0;
    return weir_err_set(err, -errno, "%s: cannot be created: %s", writer->path, strerror(errno));
}

int weir_writer_remove_parts(const struct weir_writer *writer, bool (*is_part)(const char *name, int complete),
                             int complete, struct weir_err *err)
{
    const char *path = writer->path;
    DIR *folder = opendir(path);
    if (!folder)
        return weir_err_set(err, -errno, "%s: cannot be searched: %s", path, strerror(errno));
    int rc = 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(folder));) {
        const char *name = entry->d_name;
        bool is_hidden = name[0] == '.' && name[strspn(name, ".")] != '\0';
        if ((is_hidden || (is_part && is_part(name, complete))) && unlinkat(dirfd(folder), name, 0) != 0)
            rc = weir_err_set(err, -errno, "%s/%s: cannot be removed: %s", path, name, strerror(errno));
    }
    closedir(folder);
    return rc;
}

/* ---- JSON ---- */

void weir_writer_texts(const struct weir_writer *writer, struct weir_json *json)
{
    const struct weir_copy_episode *episode = &writer->episode;
    weir_json_text(json, "name", episode->name);
    weir_json_object(json, "texts");
    for (int i = 0; i < episode->n_texts; i++)
        if (strncmp(episode->texts[i].key, "weir_", 5) != 0) /* such strings come from an earlier copy */
            weir_json_text(json, episode->texts[i].key, episode->texts[i].value);
    weir_json_end(json, '}');
}

int weir_json_document_open(const struct weir_writer *writer, struct weir_json_document *document, bool pretty,
                            struct weir_err *err)
{
    *document = (struct weir_json_document){0};
    document->file = open_memstream(&document->text, &document->n);
    if (!document->file)
        return weir_writer_no_memory(writer, err);
    weir_json_open(&document->json, document->file, pretty);
    weir_json_object(&document->json, NULL);
    return 0;
}

int weir_json_document_close(const struct weir_writer *writer, struct weir_json_document *document,
                             struct weir_err *err)
{
    weir_json_end(&document->json, '}');
    weir_json_close(&document->json);
    return fclose(document->file) == 0 && document->text ? 0 : weir_writer_no_memory(writer, err);
}
