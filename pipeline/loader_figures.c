/* Configuration and counters of an open loader. */
#include "pipeline/loader_priv.h"
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/offload/upload.h"
#include "pipeline/samples/probe.h"
#include "weir/loader.h"
#include "weir/report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

const struct weir_dataset *weir_loader_dataset(const struct weir_loader *loader)
{
    return loader->shared.setup.dataset;
}

const struct weir_sampler *weir_loader_sampler(const struct weir_loader *loader)
{
    return loader->shared.setup.sampler;
}

struct weir_recorder *weir_loader_recorder(const struct weir_loader *loader)
{
    return loader->shared.recorder;
}

static double since_start_s(const struct weir_loader *loader, uint64_t then_ns)
{
    return then_ns ? (double)(then_ns - loader->start_ns) / 1e9 : 0;
}

void weir_loader_facts(const struct weir_loader *loader, struct weir_loader_facts *facts)
{
    const struct weir_shared *s = &loader->shared;
    *facts = (struct weir_loader_facts){
        .workers = loader->n_workers,
        .number = s->setup.config.number,
        .prefetch = s->setup.config.prefetch,
        .cores = s->setup.placement.cores,
        .gpus = s->setup.placement.gpus,
        .slots = s->slots.n,
        .slot_bytes = s->setup.layout.slot_bytes,
        .index_bytes = weir_dataset_index_bytes(s->setup.dataset),
        .extent_max = weir_dataset_extent_max(s->setup.dataset),
        .images_per_sample = weir_windows_images(&s->setup.windows),
        .files = weir_dataset_files(s->setup.dataset),
        .files_from_index = weir_dataset_files_from_index(s->setup.dataset),
        .index_s = since_start_s(loader, loader->indexed_ns),
        .cache_budget_bytes = s->cache.budget_bytes,
        .cache_mapped_bytes = s->cache.memory_bytes,
        .cache_frames_all = s->cache.all_frames,
        .cache_bytes_all = s->cache.all_bytes,
        .open_s = since_start_s(loader, loader->opened_ns),
        .first_batch_s = since_start_s(loader, loader->first_batch_ns),
    };
    facts->lendable = s->upload ? s->upload->n_batches : s->slots.n;
    facts->device = s->upload ? s->upload->device->number : -1;
    facts->gpu_bytes = s->upload ? s->upload->memory_bytes + weir_gpu_blocks_bytes(s->upload->blocks) : 0;
    snprintf(facts->gpu, sizeof facts->gpu, "%s", s->upload ? weir_device_name(s->upload->device) : "");
    facts->decoder_requested = s->setup.decoder.requested;
    facts->decoder_used = s->setup.config.decoder;
    facts->decoder_why = s->setup.decoder.why;
    weir_reading_facts(s, facts);
    for (int c = 0; c < s->setup.layout.n_cameras; c++) {
        facts->image_width[c] = s->setup.out_views[c].out_width;
        facts->image_height[c] = s->setup.out_views[c].out_height;
        facts->views[c] = s->setup.out_views[c];
        facts->whole[c] = weir_view_is_whole(&s->setup.out_views[c], &s->setup.probes[c]);
    }
}

bool weir_loader_unturned(const struct weir_loader *loader, char *text, size_t size)
{
    return weir_probe_unturned(loader->shared.setup.dataset, loader->shared.setup.probes, text, size);
}

double weir_loader_cached(struct weir_loader *loader)
{
    return weir_reading_cached(&loader->shared);
}

void weir_loader_norm(const struct weir_loader *loader, bool actions, const float **mean, const float **std)
{
    const struct weir_norm *norm = actions ? &loader->shared.setup.actions : &loader->shared.setup.qpos;
    *mean = norm->mean;
    *std = norm->std;
}

void weir_loader_counts(struct weir_loader *loader, struct weir_loader_counts *counts, bool reset_extremes)
{
    const struct weir_shared *s = &loader->shared;
    *counts = (struct weir_loader_counts){
        .bad_frames = atomic_load_explicit(&s->faults.bad_frames, memory_order_relaxed),
        .skipped_samples = atomic_load_explicit(&s->faults.skipped_samples, memory_order_relaxed),
        .substituted_frames = atomic_load_explicit(&s->faults.substituted_frames, memory_order_relaxed),
        .changed_files = atomic_load_explicit(&s->faults.changed_files, memory_order_relaxed),
        .bad_episodes = (uint64_t)weir_dataset_bad_episodes(s->setup.dataset),
        .cache_seen = atomic_load_explicit(&s->cache.seen, memory_order_relaxed),
        .cache_frames = atomic_load_explicit(&s->cache.kept, memory_order_relaxed),
        .cache_bytes = atomic_load_explicit(&s->cache.used_bytes, memory_order_relaxed),
    };
    weir_dataset_helper(s->setup.dataset, &counts->helper);
    weir_dataset_server(s->setup.dataset, &counts->server);
    weir_reading_in_flight(s, counts);
    for (int i = 0; i < loader->n_contexts; i++) {
        struct weir_read_counts reads;
        weir_reader_counts(loader->workers[i].fetcher.reader, &reads);
        struct weir_decoder_counts decoded;
        weir_decoder_counts(loader->workers[i].decoder, &decoded);
        counts->decoded.frames += decoded.frames;
        counts->decoded.stored_pixels += decoded.stored_pixels;
        counts->decoded.decoded_pixels += decoded.decoded_pixels;
        counts->decoded.warned_frames += decoded.warned_frames;
        counts->reads += reads.reads;
        counts->read_bytes += reads.bytes;
        counts->ahead_reads += reads.ahead;
        uint64_t fallbacks = atomic_load_explicit(&loader->workers[i].fetcher.fallbacks, memory_order_relaxed);
        counts->fallback_reads += fallbacks;
        counts->frames_shared += atomic_load_explicit(&loader->workers[i].frames_shared, memory_order_relaxed);
        counts->cache_hits += atomic_load_explicit(&loader->workers[i].cache_hits, memory_order_relaxed);
        counts->cache_misses += atomic_load_explicit(&loader->workers[i].cache_misses, memory_order_relaxed);
        counts->reads += fallbacks;
        counts->read_bytes += atomic_load_explicit(&loader->workers[i].fetcher.fallback_bytes, memory_order_relaxed);
        weir_fetch_add_chunks(&loader->workers[i].fetcher, &counts->chunks);
        weir_fetch_add_pictures(&loader->workers[i].fetcher, &counts->video);
    }
    pthread_mutex_lock(&loader->depth_lock);
    counts->queue_sum = loader->depth.sum;
    counts->queue_samples = loader->depth.samples;
    counts->queue_min = loader->depth.max < 0 ? 0 : loader->depth.min;
    counts->queue_max = loader->depth.max < 0 ? 0 : loader->depth.max;
    if (reset_extremes)
        loader->depth = (struct weir_queue_depth){loader->depth.sum, loader->depth.samples, INT_MAX, -1};
    pthread_mutex_unlock(&loader->depth_lock);
}

struct weir_device *weir_device_of(const struct weir_loader *loader)
{
    return loader->shared.upload ? loader->shared.upload->device : NULL;
}

void weir_loader_gpu_figures(struct weir_loader *loader, struct weir_gpu_figures *figures)
{
    struct weir_upload *upload = loader->shared.upload;
    *figures = (struct weir_gpu_figures){0};
    if (!upload)
        return;
    weir_upload_times_collect(upload, NULL); /* errors are ignored, because the uploader reports them */
    pthread_mutex_lock(&upload->lock);
    *figures = upload->times.figures;
    pthread_mutex_unlock(&upload->lock);
}

static void engine_figures(struct weir_gpu_engine_figures *figures, const struct weir_decode_engine *engine)
{
    bool hardware = engine->kind == WEIR_GPU_JPEG_HARDWARE;
    *figures = (struct weir_gpu_engine_figures){
        .hardware = hardware ? engine->decode->hardware : 0,
        .busy_ns = engine->busy_ns,
        .frames = engine->frames_done,
        .groups = engine->batches_done,
    };
}

void weir_loader_gpu_decode_figures(struct weir_loader *loader, struct weir_gpu_decode_figures *figures)
{
    struct weir_gpu_decode *decode = loader->shared.decode;
    *figures = (struct weir_gpu_decode_figures){0};
    if (!decode)
        return;
    struct weir_psnr_check_counts psnr;
    weir_psnr_check_counts(decode->psnr_check, &psnr);
    figures->n_engines = decode->n_engines;
    pthread_mutex_lock(&decode->figures_lock);
    for (int i = 0; i < decode->n_engines; i++)
        engine_figures(&figures->engines[i], &decode->engines[i]);
    figures->groups = decode->batch_times;
    pthread_mutex_unlock(&decode->figures_lock);
    for (int i = WEIR_JPEG_TAKEN + 1; i < WEIR_JPEG_REFUSALS; i++)
        figures->to_cpu += atomic_load_explicit(&decode->tally.frames[i], memory_order_relaxed);
    weir_gpu_jpeg_tally_text(&decode->tally, figures->reasons, sizeof figures->reasons);
    figures->cpu_ns = atomic_load_explicit(&decode->here_ns, memory_order_relaxed);
    figures->compared = psnr.compared;
    figures->below = psnr.below;
    figures->gate_db = WEIR_PSNR_LEAST_DB;
    figures->least_db = psnr.least_db;
}

int weir_loader_sources(struct weir_loader *loader, struct weir_source_figures **out)
{
    return weir_sources_take(&loader->shared.sources, out);
}

int weir_steps_of(struct weir_loader *loader, struct weir_steps *copy)
{
    return weir_steps_take(&loader->steps, weir_clock_monotonic_ns(), copy);
}

void weir_steps_shown_of(const struct weir_loader *loader, struct weir_step_sums *sums)
{
    weir_steps_shown(&loader->steps, sums);
}

/* Returns the size of a decode cache for all frames of the dataset: its pages, including its tables. */
static uint64_t frames_bytes(const struct weir_shared *s)
{
    enum { PAGE = 4096 };
    uint64_t steps = 0, step_bytes = 0;
    for (int e = 0; e < weir_dataset_episodes(s->setup.dataset); e++)
        steps += (uint64_t)weir_dataset_steps(s->setup.dataset, e);
    for (int c = 0; c < s->setup.layout.n_cameras; c++)
        step_bytes += (s->setup.layout.image_bytes[c] + 63) / 64 * 64 + 8;
    uint64_t bytes = steps * step_bytes + 8 * (uint64_t)weir_dataset_episodes(s->setup.dataset) + 63;
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void add_images(const struct weir_shared *s, struct weir_report_setup *setup)
{
    const struct weir_camera_probe *first = &s->setup.probes[0];
    int n = s->setup.layout.n_cameras;
    setup->kind = weir_frame_is_encoded(first->kind) ? weir_probe_kind(first) : WEIR_FRAME_RAW;
    for (int c = 0; c < n; c++) {
        const struct weir_camera_probe *probe = &s->setup.probes[c];
        setup->image_bytes += s->setup.layout.image_bytes[c] / (uint64_t)n;
        setup->sizes_differ |= probe->width != first->width || probe->height != first->height;
    }
}

/* Returns the number of JPEG engines of the GPU that receives the batches; 0 if the workers decode no JPEGs. The first
 * call loads nvJPEG. */
static int jpeg_engines(const struct weir_shared *s, const struct weir_report_setup *setup)
{
    int engines = 0;
    bool on_cpu = s->upload && !weir_decoder_on_gpu(s->setup.config.decoder) && setup->kind == WEIR_FRAME_JPEG;
    return on_cpu && weir_gpu_jpeg_check(setup->device, WEIR_GPU_JPEG_HARDWARE, &engines, NULL) == 0 ? engines : 0;
}

void weir_steps_setup(const struct weir_loader *loader, struct weir_report_setup *setup)
{
    const struct weir_shared *s = &loader->shared;
    const struct weir_pixel_format *format = &s->setup.config.format;
    *setup = (struct weir_report_setup){
        .known = true,
        .workers = loader->n_workers,
        .slots = s->slots.n,
        .batch_size = s->setup.config.batch_size,
        .images_per_sample = weir_windows_images(&s->setup.windows),
        .device = s->upload ? s->upload->device->number : -1,
        .width = s->setup.probes[0].width,
        .height = s->setup.probes[0].height,
        .out_width = s->setup.out_views[0].out_width,
        .out_height = s->setup.out_views[0].out_height,
        .normalised = !s->upload && format->dtype != WEIR_DTYPE_U8,
        .encoded = weir_frame_is_encoded(s->setup.probes[0].kind),
        .reads_ahead = s->reading.ahead && weir_ahead_kind(s->reading.used) == WEIR_AHEAD_BUFFERS,
        .direct = s->setup.config.direct,
        .frames_bytes = frames_bytes(s),
        .cached_at_start = s->reading.cached,
        .indexed = weir_dataset_files_from_index(s->setup.dataset) == weir_dataset_files(s->setup.dataset) ||
                   !weir_dataset_can_have_index(s->setup.dataset),
        .index_s = since_start_s(loader, loader->indexed_ns),
    };
    snprintf(setup->decoder, sizeof setup->decoder, "%s", s->setup.config.decoder);
    snprintf(setup->io, sizeof setup->io, "%s", s->reading.used);
    add_images(s, setup);
    setup->jpeg_engines = jpeg_engines(s, setup);
}

void weir_loader_probe_storage(struct weir_loader *loader, struct weir_report_storage *storage)
{
    struct weir_storage_probe probe;
    weir_reading_probe(&loader->shared, loader->n_workers, &probe);
    storage->probe_depth = probe.depth;
    storage->probe_small_s = probe.small_s;
    storage->probe_whole_s = probe.whole_s;
    storage->probe_bytes_per_s = probe.bytes_per_s;
}

void weir_loader_probe_jpeg(struct weir_loader *loader, double *jpeg_s)
{
    const struct weir_shared *s = &loader->shared;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_probe_jpeg_s(s->setup.dataset, 0, &s->setup.probes[0], jpeg_s, &err) < 0)
        *jpeg_s = 0;
}

void weir_loader_now(const struct weir_loader *loader, struct weir_loader_now *now)
{
    const struct weir_slots *slots = &loader->shared.slots;
    *now = (struct weir_loader_now){.slots = slots->n, .workers = loader->n_contexts};
    for (int i = 0; i < slots->n; i++) {
        const struct weir_slot *slot = &slots->slot[i];
        uint64_t armed = atomic_load_explicit(&slot->armed, memory_order_relaxed);
        now->batches_ready +=
            armed && atomic_load_explicit(&slot->complete, memory_order_relaxed) == armed && !slot->lent;
        now->batches_begun += atomic_load_explicit(&slot->begun, memory_order_relaxed);
    }
    for (int i = 0; i < loader->n_contexts; i++)
        now->workers_busy += atomic_load_explicit(&loader->workers[i].doing, memory_order_relaxed) == WEIR_DOING_TASK;
}

void weir_loader_count_now(const struct weir_loader *loader)
{
    static weir_name names[3];
    struct weir_loader_now now;
    weir_loader_now(loader, &now);
    weir_counter(weir_site_name_(&names[0], "batches ready", WEIR_CAT_OTHER), now.batches_ready);
    weir_counter(weir_site_name_(&names[1], "bytes in flight", WEIR_CAT_OTHER),
                 (double)now.batches_begun * (double)loader->shared.slots.slot_bytes);
    weir_counter(weir_site_name_(&names[2], "busy workers", WEIR_CAT_OTHER), now.workers_busy);
}

bool weir_loader_fault(struct weir_loader *loader, int i, char text[WEIR_FAULT_TEXT], uint64_t *count)
{
    struct weir_faults *faults = &loader->shared.faults;
    pthread_mutex_lock(&faults->lock);
    bool there = i >= 0 && i < faults->n;
    if (there) {
        memcpy(text, faults->kept[i].text, WEIR_FAULT_TEXT);
        *count = faults->kept[i].count;
    }
    pthread_mutex_unlock(&faults->lock);
    return there;
}
