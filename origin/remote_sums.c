/* Files whose server states no strong ETag: what is read twice is compared. */
#include "base/hash.h"
#include "base/terminal.h"
#include "origin/remote_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = WEIR_DISK_BLOCK };
static const uint64_t CHECKED_MAX = (uint64_t)1 << 40; /* bytes of a file; the sums of a larger one take over 1 GiB */

void weir_remote_learn_sums(struct weir_remote *r, struct weir_object *object)
{
    const struct weir_remote_facts *facts = &object->facts;
    if (weir_etag_is_strong(facts->etag))
        return;
    atomic_store(&r->has_loose, true);
    if (facts->size_bytes <= CHECKED_MAX) /* without memory nothing is compared */
        object->sums = calloc((size_t)(facts->size_bytes / BLOCK) + 1, sizeof *object->sums);
    bool any = *facts->etag || facts->modified_s;
    if (!any && !atomic_exchange(&r->warned, true))
        weir_notice(
            "%s: the server states no ETag and no Last-Modified, so a change of this file and others shows only "
            "in bytes that are read again; do not change files during a run, or use another server",
            object->path);
}

int weir_remote_check_sums(void *checked, const struct weir_client_request *request,
                           const struct weir_client_head *head, struct weir_err *err)
{
    struct weir_object *object = checked;
    const struct weir_remote_facts *facts = &object->facts;
    uint64_t begin = (request->wanted.offset + BLOCK - 1) / BLOCK,
             end = request->wanted.offset + request->wanted.length;
    bool is_sure = weir_etag_is_strong(head->etag) && strcmp(head->etag, facts->etag) == 0;
    bool changed = atomic_load_explicit(&object->changed, memory_order_relaxed);
    uint64_t blocks = end == facts->size_bytes ? (end + BLOCK - 1) / BLOCK : end / BLOCK;
    for (uint64_t i = begin; i < blocks && object->sums && !is_sure && !changed; i++) {
        uint64_t at = i * BLOCK, n = end - at < BLOCK ? end - at : BLOCK;
        uint32_t sum = (uint32_t)weir_hash64(request->to + (at - request->wanted.offset), (size_t)n) | 1, before = 0;
        changed = !atomic_compare_exchange_strong_explicit(&object->sums[i], &before, sum, memory_order_relaxed,
                                                           memory_order_relaxed) &&
                  before != sum;
    }
    if (!changed)
        return 0;
    atomic_store_explicit(&object->changed, true, memory_order_relaxed);
    return weir_err_set(err, -ESTALE,
                        "the file changed since it was opened (other bytes of the same size); rerun to index it again");
}
