/* Verdicts on synthetic reports: each cause, values on both sides of its threshold, healthy runs, and undecidable
 * cases. */
#include "analyze/verdict/verdict_priv.h"
#include "tests/fixtures/verdict_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *names_of(const struct weir_verdict *verdict)
{
    static char text[256];
    text[0] = '\0';
    for (int i = 0; i < verdict->n_causes; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 weir_cause_name(WEIR_SUBJECT_LOADER, verdict->causes[i].cause));
    return text;
}

/* ---- changes to the report ---- */

static void as_it_is(struct made *m)
{
    (void)m;
}
static void wait_4_percent(struct made *m)
{
    verdict_set_wait(m, 0.49);
}
static void wait_6_percent(struct made *m)
{
    verdict_set_wait(m, 0.6);
}
static void only_the_first_batch(struct made *m)
{
    verdict_set_wait(m, 1);
    m->report.steps.first_wait_s = 0.9;
}
static void gpu_busy(struct made *m)
{
    verdict_set_wait(m, 0);
    m->report.gpu.used = true;
    m->report.gpu.busy = 0.9;
}
static void gpu_busy_while_the_host_waits(struct made *m)
{
    verdict_set_wait(m, 8);
    m->report.gpu.used = true;
    m->report.gpu.busy = 0.96;
}
static void gpu_idle(struct made *m)
{
    verdict_set_wait(m, 0.2);
    m->report.gpu.used = true;
    m->report.gpu.busy = 0.3;
}
static void inflate_most(struct made *m)
{
    verdict_row(m, "03b_image_decode")->self_s = verdict_row(m, "03b_image_decode")->cpu_s = 1;
    verdict_add_row(m, "03d_inflate", WEIR_KIND_WORK, WEIR_SIDE_WORKER, 17, 17);
}
static void video_most(struct made *m)
{
    verdict_row(m, "03b_image_decode")->self_s = verdict_row(m, "03b_image_decode")->cpu_s = 1;
    verdict_add_row(m, "03j_video_decode", WEIR_KIND_WORK, WEIR_SIDE_WORKER, 17, 17);
}
static void convert_most(struct made *m)
{
    verdict_row(m, "03b_image_decode")->self_s = verdict_row(m, "03b_image_decode")->cpu_s = 1;
    verdict_add_row(m, "05_to_tensor_normalize", WEIR_KIND_WORK, WEIR_SIDE_WORKER, 17, 17);
    m->report.setup.normalised = true;
}
static void page_cache_most(struct made *m)
{
    verdict_row(m, "03b_image_decode")->self_s = verdict_row(m, "03b_image_decode")->cpu_s = 1;
    verdict_row(m, "03c_read_bytes")->self_s = verdict_row(m, "03c_read_bytes")->cpu_s = 17;
}
static void reads_sleep(struct made *m)
{
    verdict_set_workers(m, 2, 2, 0, 7.9, 0.1);
}
static void reads_sleep_a_little(struct made *m)
{
    verdict_set_workers(m, 2, 8.8, 0, 1.1, 0.1);
}
static void reads_hardly_sleep(struct made *m)
{
    verdict_set_workers(m, 2, 9.1, 0, 0.8, 0.1);
}
static void storage_is_full(struct made *m)
{
    reads_sleep(m);
    m->report.storage = (struct weir_report_storage){1e9, 16, 0.1e-3, 0.6e-3, 2e8};
}
static void storage_is_far(struct made *m)
{
    reads_sleep(m);
    m->report.storage = (struct weir_report_storage){1e9, 16, 0.9e-3, 1e-3, 8e8};
}
static void storage_is_between(struct made *m)
{
    reads_sleep(m);
    m->report.storage = (struct weir_report_storage){1e9, 16, 0.9e-3, 1e-3, 2.6e8};
}
static void storage_by_the_byte(struct made *m)
{
    storage_is_far(m);
    m->report.storage.probe_small_s = 0.4e-3;
}
static void few_in_flight(struct made *m)
{
    verdict_add_server(m, 15.5, 16, 16);
}
static void requests_that_depend(struct made *m)
{
    verdict_add_server(m, 2, 64, 1000);
}
static void link_is_full(struct made *m)
{
    verdict_add_server(m, 60, 64, 1000);
}
static void requests_queue(struct made *m)
{
    verdict_add_server(m, 60, 64, 64);
    verdict_row(m, "03l_first_byte")->min_s = 0.005;
}
static void server_refuses(struct made *m)
{
    verdict_add_server(m, 4, 4, 1000);
    m->report.server.limited = 1600;
}
static void server_hardly_refuses(struct made *m)
{
    verdict_add_server(m, 60, 64, 1000);
    m->report.server.limited = 160;
}
static void server_keeps_up(struct made *m)
{
    verdict_add_server(m, 16, 64, 1000);
    struct weir_report_row row = *verdict_row(m, "03l_first_byte");
    verdict_set_workers(m, 2, 9.8, 0, 0.05, 0.1);
    m->report.prof.rows[m->report.prof.n_rows++] = row;
}
static void one_of_fifty_is_slow(struct made *m)
{
    reads_sleep(m);
    struct weir_report_row *read = verdict_row(m, "03c_read_bytes");
    read->p50_s = read->p90_s = read->mean_s / 40;
    read->p99_s = 40 * read->mean_s;
}
static void reads_differ(struct made *m)
{
    reads_sleep(m);
    struct weir_report_row *read = verdict_row(m, "03c_read_bytes");
    read->p50_s = read->mean_s / 2;
    read->p90_s = 2 * read->mean_s;
    read->p99_s = 4 * read->mean_s;
}
static void camera_is_slow(struct made *m)
{
    reads_sleep(m);
    m->report.sources.cameras[1].read = (struct weir_report_source){8000, 800000000, 15, 1.9e-3, 3e-3, 5e-3};
}
static void camera_is_three_times_slower(struct made *m)
{
    reads_sleep(m);
    m->report.sources.cameras[1].read.p50_s = 3 * m->report.sources.cameras[0].read.p50_s;
}
static void file_is_slow(struct made *m)
{
    reads_sleep(m);
    m->report.sources.files_median_s = 50e-6;
    m->report.sources.n_files = 2;
    m->report.sources.cameras[0].read.total_s = m->report.sources.cameras[1].read.total_s = 8;
    m->report.sources.files[0] = (struct weir_report_file){"episode_7.hdf5", 1300, 11.5e-3, 20e-3};
    m->report.sources.files[1] = (struct weir_report_file){"episode_3.hdf5", 1300, 60e-6, 1e-3};
}
static void one_read_of_a_file_was_slow(struct made *m)
{
    file_is_slow(m);
    m->report.sources.files[0] = (struct weir_report_file){"episode_7.hdf5", 1300, 11.5e-3, 14.9};
}
static void two_files_are_slow(struct made *m)
{
    file_is_slow(m);
    m->report.sources.files[1].mean_s = 10e-3;
}
static void worker_is_slow_beside_others(struct made *m)
{
    verdict_set_workers(m, 2, 1, 6, 0, 2.8);
    m->report.prof.machine.others_cores = 1.8;
    m->workers[1].work_s = 9.9;
    m->workers[1].wait_s = 0.1;
}
static void tail_that_hit_one_worker(struct made *m)
{
    one_of_fifty_is_slow(m);
    m->workers[0].blocked_s = 1.7;
}
static void worker_is_always_busy(struct made *m)
{
    verdict_set_workers(m, 4, 3, 0, 0, 6.9);
    m->report.prof.machine.cores = m->report.prof.machine.part = 4;
    m->workers[1].work_s = m->workers[1].cpu_s = 9.9;
    m->workers[1].wait_s = m->workers[1].blocked_s = 0.1;
    m->report.late = (struct weir_report_late){.batches = 900, .wait_s = 7, .task_s = 8, .worker_wait_s = 6.9};
    snprintf(m->report.late.worker, sizeof m->report.late.worker, "weir-w1");
}
static void any_worker_completes(struct made *m)
{
    worker_is_always_busy(m);
    m->report.late.worker_wait_s = 3;
}
static void worker_is_slow(struct made *m)
{
    verdict_set_workers(m, 4, 2, 0, 0, 7.8);
    m->report.prof.machine.cores = m->report.prof.machine.part = 4;
    m->workers[1].work_s = 9.9;
    m->workers[1].wait_s = 0.1;
    verdict_row(m, "03c_read_bytes")->self_s += 7.8;
    verdict_row(m, "09_wait_for_slot")->self_s -= 7.7;
}
static void library_is_busy(struct made *m)
{
    verdict_set_workers(m, 8, 1, 0, 2, 0);
    verdict_add_row(m, "09c_wait_for_library", WEIR_KIND_WAIT, WEIR_SIDE_WORKER, 8 * 7, 0);
    m->report.fallbacks = (struct weir_report_fallbacks){16000, 0.95, 0.6e-3, 5.6};
}
static void library_is_half_busy(struct made *m)
{
    m->report.fallbacks = (struct weir_report_fallbacks){1600, 0.5, 0.6e-3, 0.1};
}
static void bus_is_busy(struct made *m)
{
    verdict_set_workers(m, 2, 3, 0, 0, 6.9);
    m->report.gpu.used = true;
    m->report.gpu.copy_bytes_per_s = 5e9;
    m->report.gpu.n_rows = 1;
    m->report.gpu.rows[0] =
        (struct weir_report_row){.name = "07_h2d_copy", .side = WEIR_SIDE_GPU, .count = 1000, .total_s = 9.2};
}
static void engines_are_busy(struct made *m)
{
    verdict_set_workers(m, 2, 3, 0, 0, 6.9);
    m->report.gpu.used = true;
    m->report.gpu.decode.n_engines = 1;
    m->report.gpu.decode.engines[0] = (struct weir_report_engine){"7 JPEG engines", 16000, 100, 0.97};
}
static void both_wait(struct made *m)
{
    verdict_set_workers(m, 2, 4, 0, 0, 5.9);
    verdict_set_wait(m, 3);
}
static void batches_of_a_moment(struct made *m)
{
    both_wait(m);
    m->report.steps.train_batches = 40000;
}
static void neighbours_and_few_batches(struct made *m)
{
    verdict_set_workers(m, 2, 2, 5.5, 0, 2.4);
    m->report.prof.machine.others_cores = 1.5;
}
static void neighbours_and_uneven_steps(struct made *m)
{
    neighbours_and_few_batches(m);
    verdict_row(m, "20_train_forward_pass")->p50_s /= 100;
}
static void one_worker(struct made *m)
{
    verdict_set_workers(m, 1, 9.8, 0, 0, 0.1);
}
static void one_worker_while_others_have_the_cores(struct made *m)
{
    verdict_set_workers(m, 1, 4.7, 5.2, 0, 0.1);
    m->report.prof.machine.others_cores = 1.53;
}
static void one_worker_while_others_leave_a_little(struct made *m)
{
    one_worker(m);
    m->report.prof.machine.others_cores = 0.8;
}
static void one_worker_while_others_leave_half_a_core(struct made *m)
{
    one_worker(m);
    m->report.prof.machine.others_cores = 0.5;
}
static void a_rank_beside_others(struct made *m)
{
    one_worker(m); /* its part of 16 cores is two; the other ranks use seven */
    m->report.prof.machine.cores = m->report.prof.machine.online = 16;
    m->report.prof.machine.others_cores = 7;
}
static void no_workers(struct made *m)
{
    verdict_set_workers(m, 1, 9.8, 0, 0, 0.1);
    m->report.setup.workers = 0;
}
static void no_workers_one_core(struct made *m)
{
    no_workers(m);
    m->report.prof.machine.cores = m->report.prof.machine.part = 1;
}
static void no_workers_while_others_have_the_cores(struct made *m)
{
    no_workers(m);
    m->report.prof.machine.others_cores = 1;
}
static void eight_workers(struct made *m)
{
    verdict_set_workers(m, 8, 2.45, 7.4, 0, 0.1);
}
static void two_workers_wait_for_cores(struct made *m)
{
    verdict_set_workers(m, 2, 8.95, 0.95, 0, 0.1); /* 9.5 %, just below the threshold */
    m->report.prof.machine.others_cores = 0.2;
}
static void neighbours(struct made *m)
{
    verdict_set_workers(m, 2, 5, 4.9, 0, 0.1);
    m->report.prof.machine.others_cores = 1;
}
static void neighbours_and_host(struct made *m)
{
    neighbours(m);
    m->report.prof.machine.steal_cores = 0.12;
}
static void neighbours_and_storage(struct made *m)
{
    verdict_set_workers(m, 2, 1.5, 1.5, 6.9, 0.1);
    m->report.prof.machine.others_cores = 1.6;
}
static void neighbours_and_camera(struct made *m)
{
    neighbours_and_storage(m);
    m->report.sources.cameras[1].read = (struct weir_report_source){8000, 800000000, 15, 1.9e-3, 3e-3, 5e-3};
}
static void others_that_do_not_matter(struct made *m)
{
    verdict_set_workers(m, 2, 5, 4.9, 0, 0.1); /* the workers wait for cores that no other process uses */
    m->report.prof.machine.others_cores = 0.05;
}
static void quota(struct made *m)
{
    verdict_set_workers(m, 2, 2.5, 0, 0, 0.1);
    m->report.prof.machine.quota_cores = 0.5;
    m->report.prof.machine.throttling = true;
    m->report.prof.machine.periods = 100;
    m->report.prof.machine.throttled = 98;
    for (int i = 0; i < 2; i++) {
        m->workers[i].throttled_s = 7.4;
        m->workers[i].blocked_s = 0.1;
    }
}
static void quota_hardly_used(struct made *m)
{
    quota(m);
    verdict_set_workers(m, 2, 9.8, 0, 0, 0.1);
    m->report.prof.machine.quota_cores = 2;
    m->report.prof.machine.throttled = 9;
}
static void quota_of_one_core_used_up(struct made *m)
{
    quota(m);
    verdict_set_workers(m, 2, 4.8, 0.1, 0, 0.1);
    m->report.prof.machine.quota_cores = 1;
    m->report.prof.machine.throttled = 9;
}
static void host(struct made *m)
{
    m->report.prof.machine.steal_cores = 0.4;
}
static void host_while_reads_sleep(struct made *m)
{
    reads_sleep(m);
    m->report.prof.machine.steal_cores = 0.4;
}
static void host_a_little(struct made *m)
{
    m->report.prof.machine.steal_cores = 0.09;
}
static void host_a_few_percent(struct made *m)
{
    m->report.prof.machine.steal_cores = 0.11;
}
static void host_a_few_percent_and_slow_reads(struct made *m)
{
    verdict_set_workers(m, 2, 3.7, 0, 6.1, 0.2);
    host_a_few_percent(m);
}
static void quota_and_slow_reads(struct made *m)
{
    verdict_set_workers(m, 2, 1, 0, 7.7, 0.1);
    m->report.prof.machine.quota_cores = 1.5;
    m->report.prof.machine.throttling = true;
    m->report.prof.machine.periods = 100;
    m->report.prof.machine.throttled = 12;
    for (int i = 0; i < 2; i++) {
        m->workers[i].throttled_s = 1.2;
        m->workers[i].blocked_s -= 1.2;
    }
}
static void cpu_grows(struct made *m)
{
    m->facts.cpu_growth = 1.4;
}
static void cpu_grows_a_little(struct made *m)
{
    m->facts.cpu_growth = 1.2;
}
static void cold(struct made *m)
{
    verdict_set_workers(m, 2, 5, 0, 4.9, 0.1);
    m->report.setup.cached_at_start = 0;
    m->report.storage.device_bytes = 6e8;
    m->report.first_epoch = (struct weir_report_epochs){1, 5300, 6, 5, 900, 900, 5e8};
    m->report.later_epochs = (struct weir_report_epochs){2, 10700, 4, 2.1, 2600, 2700, 1e6};
}
static void cold_and_no_later_epochs(struct made *m)
{
    verdict_set_workers(m, 2, 3, 0, 6.9, 0.1);
    m->report.setup.cached_at_start = 0;
    m->report.first_epoch = (struct weir_report_epochs){1, 16000, 10, 7.1, 1600, 1600, 1.5e9};
}
static void cold_for_ever(struct made *m)
{
    cold(m);
    m->report.later_epochs = (struct weir_report_epochs){2, 10700, 12, 2.1, 880, 900, 1e9};
}
static void too_few_batches(struct made *m)
{
    m->report.steps.train_batches = 7;
}
static void nineteen_in_a_moment(struct made *m)
{
    m->report.steps.train_batches = 19;
    m->report.steps.train_s = 0.9;
    m->report.steps.train_wait_s = 0.8;
}
static void few_for_the_slots(struct made *m)
{
    m->report.steps.train_batches = 8;
    m->report.queue_slots = 5;
}
static void eight_that_took_long(struct made *m)
{
    m->report.steps.train_batches = 8;
}
static void enough_batches(struct made *m)
{
    m->report.steps.train_batches = 20;
}
static void too_little_time(struct made *m)
{
    m->report.steps.train_s = 0.49;
    m->report.steps.train_wait_s = 0.4;
}
static void no_timing(struct made *m)
{
    m->report.timing = false;
}
static void old_log(struct made *m)
{
    m->report.steps = (struct weir_report_steps){0};
    m->report.setup = (struct weir_report_setup){0};
}
static void much_other(struct made *m)
{
    m->workers[0].unattributed_s = m->workers[1].unattributed_s = 1.1;
}
static void epochs_apart(struct made *m)
{
    m->report.first_epoch = (struct weir_report_epochs){1, 5300, 3, 2, 1700, 1700, 0};
    m->report.later_epochs = (struct weir_report_epochs){2, 10700, 7, 5, 900, 1900, 0};
}
static void short_epochs_apart(struct made *m)
{
    epochs_apart(m);
    m->report.later_epochs.n = 50;
}
static void epochs_nearer(struct made *m)
{
    epochs_apart(m);
    m->report.later_epochs.slowest = 1000;
}
static void sampled(struct made *m)
{
    neighbours(m);
    verdict_row(m, "03b_image_decode")->cpu_s = -1;
}
static void nothing_is_busy(struct made *m)
{
    m->report.prof.machine.cores = m->report.prof.machine.part = 16;
    verdict_set_workers(m, 16, 9, 0, 0, 0.9);
    for (int i = 0; i < 16; i++)
        m->workers[i].unattributed_s = 0.9;
    m->report.cpu_s = 120;
    verdict_set_wait(m, 0.9);
}
static void decoder_sleeps(struct made *m)
{
    verdict_set_workers(m, 2, 2, 0, 0, 0.1);
    verdict_row(m, "03b_image_decode")->self_s += 2 * 7.9;
}
static void decoder_sleeps_for_one_camera(struct made *m)
{
    decoder_sleeps(m);
    m->report.sources.cameras[0].decode = (struct weir_report_source){8000, 800000000, 0.8, 0.1e-3, 0.2e-3, 1e-3};
    m->report.sources.cameras[1].decode = (struct weir_report_source){8000, 800000000, 19, 2.4e-3, 3e-3, 5e-3};
}
static void budget_of_storage(struct made *m)
{
    one_of_fifty_is_slow(m);
    m->report.storage = (struct weir_report_storage){1e9, 16, 0.9e-3, 1e-3, 2e8};
}
static void tail_of_storage(struct made *m)
{
    one_of_fifty_is_slow(m);
    m->report.storage = (struct weir_report_storage){1e9, 16, 0.9e-3, 1e-3, 2e9};
}

static const struct {
    const char *name;
    void (*make)(struct made *m);
    const char *causes; /* all causes in order; a final "*" allows further causes */
} cases[] = {
    {"decoding", as_it_is, "decode"},
    {"a host that waits beside a busy GPU", gpu_busy_while_the_host_waits, "consumer"},
    {"an idle GPU", gpu_idle, "consumer"},
    {"inflate", inflate_most, "inflate"},
    {"video", video_most, "decode"},
    {"conversion", convert_most, "convert"},
    {"page cache", page_cache_most, "page-cache"},
    {"waits of 4.9 %", wait_4_percent, "consumer"},
    {"waits of 6 %", wait_6_percent, "decode"},
    {"waits for the first batch", only_the_first_batch, "consumer"},
    {"a busy GPU", gpu_busy, "consumer"},
    {"reads that sleep", reads_sleep, "storage"},
    {"reads that sleep 11 %", reads_sleep_a_little, "decode storage"},
    {"reads that sleep 8 %", reads_hardly_sleep, "decode"},
    {"storage that is full", storage_is_full, "storage-bandwidth"},
    {"storage that is far", storage_is_far, "storage-latency"},
    {"storage between the two", storage_is_between, "storage"},
    {"storage that gives more, but not for small reads", storage_by_the_byte, "storage"},
    {"sixteen requests in flight", few_in_flight, "few-in-flight"},
    {"requests that depend on each other", requests_that_depend, "server-latency"},
    {"a full link", link_is_full, "server-bandwidth"},
    {"requests that queue", requests_queue, "server-bandwidth"},
    {"a server that refuses requests", server_refuses, "server-limit"},
    {"a server that refuses one in a hundred", server_hardly_refuses, "server-bandwidth"},
    {"a server that keeps up", server_keeps_up, "decode"},
    {"a tail", one_of_fifty_is_slow, "storage-tail"},
    {"reads that differ", reads_differ, "storage"},
    {"a slow camera", camera_is_slow, "slow-camera"},
    {"a camera three times slower", camera_is_three_times_slower, "storage"},
    {"a slow file", file_is_slow, "slow-file"},
    {"one slow read of a file", one_read_of_a_file_was_slow, "storage"},
    {"two slow files", two_files_are_slow, "storage"},
    {"a slow worker", worker_is_slow, "slow-worker"},
    {"a slow worker and neighbours", worker_is_slow_beside_others, "neighbours decode slow-worker"},
    {"a tail that hit one worker more", tail_that_hit_one_worker, "storage-tail"},
    {"a worker that is always busy", worker_is_always_busy, "slow-worker"},
    {"batches that any worker completes", any_worker_completes, "bursts"},
    {"the library", library_is_busy, "library"},
    {"half the library", library_is_half_busy, "decode"},
    {"the bus", bus_is_busy, "bus *"},
    {"the engines", engines_are_busy, "gpu-decoder *"},
    {"bursts", both_wait, "bursts"},
    {"batches that take less than waking a thread", batches_of_a_moment, "cannot-tell"},
    {"neighbours, and workers that are idle then", neighbours_and_few_batches, "neighbours decode bursts"},
    {"neighbours and uneven steps", neighbours_and_uneven_steps, "neighbours decode bursts"},
    {"one worker", one_worker, "too-few-workers decode"},
    {"one worker, and others that use the other cores", one_worker_while_others_have_the_cores, "neighbours decode"},
    {"one worker, and others that leave a fifth of a core", one_worker_while_others_leave_a_little, "workers decode"},
    {"one worker, and others that leave half a core", one_worker_while_others_leave_half_a_core,
     "too-few-workers decode"},
    {"one worker of a rank", a_rank_beside_others, "too-few-workers decode"},
    {"no workers", no_workers, "too-few-workers decode"},
    {"no workers, and others that use the other core", no_workers_while_others_have_the_cores, "decode"},
    {"no workers on one core", no_workers_one_core, "decode"},
    {"eight workers", eight_workers, "too-many-workers decode"},
    {"a wait for cores of 9.5 %", two_workers_wait_for_cores, "decode"},
    {"neighbours", neighbours, "neighbours decode"},
    {"neighbours, and the host a little", neighbours_and_host, "neighbours decode host"},
    {"neighbours and storage", neighbours_and_storage, "storage decode neighbours"},
    {"neighbours and a slow camera", neighbours_and_camera, "slow-camera decode neighbours"},
    {"others that do not matter", others_that_do_not_matter, "cannot-tell"},
    {"a quota", quota, "quota decode"},
    {"a quota that is all the cores", quota_hardly_used, "decode"},
    {"a quota that is used up without throttling", quota_of_one_core_used_up, "quota decode"},
    {"the host", host, "host decode"},
    {"the host, while reads sleep", host_while_reads_sleep, "storage"},
    {"the host, a little", host_a_little, "decode"},
    {"the host, as much as a few percent", host_a_few_percent, "decode host"},
    {"the host, a few percent, and slow reads", host_a_few_percent_and_slow_reads, "storage decode host"},
    {"a quota and slow reads", quota_and_slow_reads, "storage *"},
    {"CPU that grows", cpu_grows, "decode memory-bandwidth"},
    {"CPU that grows a little", cpu_grows_a_little, "decode"},
    {"a cold first epoch", cold, "cold *"},
    {"one epoch, cold", cold_and_no_later_epochs, "cold *"},
    {"cold epochs", cold_for_ever, "storage *"},
    {"7 batches", too_few_batches, "cannot-tell"},
    {"8 batches in 10 s", eight_that_took_long, "decode"},
    {"8 batches of 5 slots", few_for_the_slots, "cannot-tell"},
    {"19 batches in 0.9 s", nineteen_in_a_moment, "cannot-tell"},
    {"20 batches", enough_batches, "decode"},
    {"0.49 s", too_little_time, "cannot-tell"},
    {"no timing", no_timing, "cannot-tell"},
    {"an old log", old_log, "cannot-tell"},
    {"much other", much_other, "cannot-tell decode"},
    {"epochs apart", epochs_apart, "cannot-tell decode"},
    {"epochs nearer", epochs_nearer, "decode"},
    {"short epochs apart", short_epochs_apart, "decode"},
    {"sampled CPU time", sampled, "neighbours cannot-tell"},
    {"nothing that is busy", nothing_is_busy, "cannot-tell"},
    {"a decoder that sleeps", decoder_sleeps, "decode"},
    {"a decoder that sleeps for one camera", decoder_sleeps_for_one_camera, "slow-camera"},
    {"reads that come in bursts of a budget", budget_of_storage, "storage-bandwidth"},
    {"a tail of storage that has more to give", tail_of_storage, "storage-tail"},
};

static bool matches(const char *got, const char *wanted)
{
    size_t n = strlen(wanted);
    if (n > 2 && strcmp(wanted + n - 2, " *") == 0)
        return strncmp(got, wanted, n - 2) == 0 && (got[n - 2] == ' ' || got[n - 2] == '\0');
    return strcmp(got, wanted) == 0;
}

Test(verdict, each_cause_is_named)
{
    struct weir_verdict verdict;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made *made = verdict_decoding();
        cases[i].make(made);
        weir_verdict_make(&verdict, &made->report, &made->facts);
        cr_expect(matches(names_of(&verdict), cases[i].causes), "%s: got \"%s\", wanted \"%s\"", cases[i].name,
                  names_of(&verdict), cases[i].causes);
        free(made);
    }
}

Test(verdict, no_prediction_passes_the_step)
{
    struct weir_verdict verdict;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made *made = verdict_decoding();
        cases[i].make(made);
        weir_verdict_make(&verdict, &made->report, &made->facts);
        double step = verdict.demands.bound[WEIR_RESOURCE_CONSUMER];
        for (int k = 0; k < verdict.n_advices; k++) {
            const struct weir_verdict_advice *a = &verdict.advices[k];
            bool other = a->kind == WEIR_ADVICE_FASTER_STEP || a->kind == WEIR_ADVICE_MORE_BATCHES || a->measured;
            if (a->ratio > 1 && !other && step > 0)
                cr_expect_leq(a->ratio * verdict.demands.bound_rate, step * 1.0001, "%s: %s", cases[i].name, a->flag);
        }
        free(made);
    }
}

/* Gains decrease from cause to cause. Causes without a known gain (doubts about the whole report) are skipped. */
Test(verdict, the_first_cause_is_the_one_whose_removal_gains_most)
{
    struct weir_verdict verdict;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made *made = verdict_decoding();
        cases[i].make(made);
        weir_verdict_make(&verdict, &made->report, &made->facts);
        for (int k = 1; k < verdict.n_causes; k++) {
            const struct weir_verdict_cause *before = &verdict.causes[k - 1], *cause = &verdict.causes[k];
            bool known = before->gain > 0 && cause->gain > 0;
            cr_expect(!known || before->gain >= cause->gain - 1e-9, "%s: %s %f before %s %f", cases[i].name,
                      weir_cause_name(WEIR_SUBJECT_LOADER, before->cause), before->gain,
                      weir_cause_name(WEIR_SUBJECT_LOADER, cause->cause), cause->gain);
        }
        free(made);
    }
}

Test(verdict, what_the_consumer_does_is_said_by_gpu_events_only)
{
    struct weir_verdict verdict;
    struct made *made = verdict_decoding();
    gpu_idle(made);
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_LAUNCH_BOUND);
    made->report.gpu.sync_steps = true;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_SYNC_BOUND);
    made->report.gpu.busy = 0.8;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_COMPUTING);
    made->report.gpu.used = false;
    made->report.prof.consumer = (struct weir_report_worker){.name = "consumer", .wall_s = 10, .cpu_s = 7.9};
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_UNKNOWN);
    cr_expect_eq(verdict.advices[0].kind, WEIR_ADVICE_TRACE);
    made->report.prof.consumer.cpu_s = 8;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_COMPUTING);
    free(made);
}

/* The step computes on the CPU while other processes occupy the cores. */
Test(verdict, a_step_that_waits_for_a_core_says_so)
{
    struct weir_verdict verdict;
    struct made *made = verdict_decoding();
    gpu_idle(made);
    made->report.gpu.used = false;
    made->report.prof.machine.others_cores = 1.83;
    made->report.prof.consumer =
        (struct weir_report_worker){.name = "consumer", .wall_s = 10, .cpu_s = 1.6, .core_wait_s = 8.3};
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_COMPUTING);
    char text[768];
    weir_verdict_sentence(text, sizeof text, &verdict, &verdict.causes[0], &made->report);
    cr_expect(strstr(text,
                     "its thread uses a core 16 % of the time, and waits for one 83 % of the time (other processes "
                     "use 1.83 cores)"),
              "%s", text);
    made->report.prof.consumer.core_wait_s = -1; /* unknown */
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_UNKNOWN);
    free(made);
}

static char *printed(struct made *made);
static void expect_text(struct made *made, const char *part);

/* A simulated step sleeps, or spins with --step-spin, so its CPU time is no evidence. */
Test(verdict, a_simulated_step_is_called_by_its_name)
{
    struct made *made = verdict_decoding();
    wait_4_percent(made);
    made->report.steps.step_ms = 2.5;
    made->report.prof.consumer = (struct weir_report_worker){.name = "consumer", .wall_s = 10, .cpu_s = 0.02};
    expect_text(made, "so data loading is not the limit. The simulated step (--step-ms 2.5) is the limit.\n"
                      "  a faster step           loading could keep up: up to ");
    made->report.prof.consumer = (struct weir_report_worker){.name = "consumer", .wall_s = 10, .cpu_s = 9};
    expect_text(made, "The simulated step (--step-ms 2.5) is the limit.\n");
    made->report.prof.consumer.cpu_s = 1.6;
    made->report.prof.consumer.core_wait_s = 8.3;
    made->report.prof.machine.others_cores = 1.83;
    expect_text(made, "The simulated step (--step-ms 2.5) is the limit: its thread waits for a core 83 % of the time "
                      "(other processes use 1.83 cores).\n");
    made->report.gpu.used = true;
    made->report.gpu.busy = 0.9;
    expect_text(made, "The simulated step (--step-ms 2.5) is the limit: the GPU is busy 90 % of the time.\n");
    free(made);
}

/* ---- a trace of the steps ---- */

static void assert_traced(struct weir_report_idle idle, enum weir_consumer consumer, const char *words)
{
    struct weir_verdict verdict;
    struct made *made = verdict_decoding();
    char text[768];
    gpu_idle(made);
    made->report.idle = idle;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, consumer);
    cr_expect_eq(verdict.advices[0].kind, WEIR_ADVICE_FASTER_STEP);
    weir_verdict_sentence(text, sizeof text, &verdict, &verdict.causes[0], &made->report);
    cr_expect(strstr(text, words), "no \"%s\" in: %s", words, text);
    free(made);
}

Test(verdict, a_trace_says_what_a_gpu_that_is_not_busy_waits_for)
{
    struct weir_report_idle idle = {0.05,
                                    0.3,
                                    .launching = 0.5,
                                    .sync = 0.15,
                                    .queued = 0.005,
                                    .other = 0.045,
                                    .delay_p50_s = 4e-6,
                                    .delay_p99_s = 12.34e-6,
                                    .kernels_per_step = 35};
    assert_traced(idle, WEIR_CONSUMER_LAUNCH_BOUND,
                  "the training step is the limit, and it is launch-bound: in the 0.050 s traced, the GPU "
                  "waited 50 % of the time for launches, 15 % for "
                  "synchronising calls, 4 % for other host code (launch delay p50 4.0us, p99 12.3us; 35.0 kernels per "
                  "step); CUDA graphs");
    idle.sync = 0.6;
    assert_traced(idle, WEIR_CONSUMER_SYNC_BOUND,
                  "sync-bound: in the 0.050 s traced, the GPU waited 60 % of "
                  "the time for synchronising calls, 50 % for launches");
    idle.allocating = 0.7;
    idle.delay_p50_s = idle.delay_p99_s = -1;
    assert_traced(idle, WEIR_CONSUMER_LAUNCH_BOUND, "allocation-bound: ");
    idle.other = 0.8;
    assert_traced(idle, WEIR_CONSUMER_UNKNOWN, "delayed by host code that launches nothing: ");
}

Test(verdict, a_trace_without_a_cause_changes_nothing)
{
    struct weir_verdict verdict;
    struct made *made = verdict_decoding();
    gpu_idle(made);
    made->report.idle = (struct weir_report_idle){.traced_s = 0.05, .busy = 0.95, .launching = 0.04};
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_not(verdict.causes[0].consumer.traced);
    cr_expect_eq(verdict.advices[0].kind, WEIR_ADVICE_TRACE);
    made->report.idle.launching = 0.5;
    made->report.gpu.busy = 0.9;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].consumer.kind, WEIR_CONSUMER_COMPUTING);
    free(made);
}

/* ---- printed verdicts ---- */

static char *printed(struct made *made)
{
    char *text = NULL;
    size_t size = 0;
    struct weir_verdict verdict;
    FILE *out = open_memstream(&text, &size);
    weir_verdict_make(&verdict, &made->report, &made->facts);
    weir_verdict_lines(out, &verdict, &made->report);
    fclose(out);
    return text;
}

static void expect_text(struct made *made, const char *part)
{
    char *text = printed(made);
    cr_expect(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part, text);
    free(text);
}

Test(verdict, backward_over_forward_is_said_where_it_was_timed)
{
    struct made *made = verdict_decoding();
    verdict_set_wait(made, 1);
    char *text = printed(made);
    cr_expect(strstr(text, "backward over forward") == NULL, "%s", text);
    free(text);
    struct weir_report_row *backward =
        verdict_add_row(made, "21_backward", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 3, 0); /* the forward pass took 2 s */
    expect_text(made, "\n  backward over forward: 1.50 (1 to 2 is usual)\n");
    backward->total_s = 5;
    expect_text(made, " 2.50 (1 to 2 is usual): the backward pass is the step's bottleneck\n");
    free(made);
}

/* The same figures from a loader without a training part. */
Test(verdict, validation_alone_is_called_by_its_name)
{
    struct made *made = verdict_decoding();
    made->report.steps.validation = true;
    expect_text(made, "verdict: Validation waited for data 71 % of the run. The CPU cores are");
    made->report.final = false;
    expect_text(made, "verdict: Validation waited for data 71 % of the time. The CPU cores are");
    verdict_add_row(made, "10_val_forward_pass", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 2.5, 0);
    expect_text(made, "data wait 71.0 % | forward 25.0 % | unattributed 4.0 %");
    wait_4_percent(made);
    made->report.steps.validation = true;
    expect_text(made, "The validation step is the limit");
    free(made);
}

/* The same figures from a program that does nothing with its batches. */
Test(verdict, without_a_step_the_limits_of_the_loader_are_named)
{
    struct made *made = verdict_decoding();
    made->report.steps.no_step = true;
    expect_text(made, "verdict: No training step was simulated: this is the loader's top speed. The CPU cores are the "
                      "limit: this run keeps 1.97 of 2 usable cores busy");
    char *text = printed(made);
    cr_expect(strstr(text, "data wait") == NULL && strstr(text, "waited") == NULL, "%s", text);
    cr_expect(strstr(text, ", the step ") == NULL, "%s", text);
    free(text);
    wait_4_percent(made);
    made->report.steps.no_step = true;
    expect_text(made, "verdict: No training step was simulated: this is the loader's top speed. ");
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_neq(verdict.causes[0].cause, WEIR_CAUSE_CONSUMER, "there is no step that could be the limit");
    cr_expect_str_eq(weir_data_bound_name(verdict.bound), "no-step");
    free(made);
}

Test(verdict, the_sentence_has_the_figures_of_the_report)
{
    struct made *made = verdict_decoding();
    verdict_add_row(made, "23_release_batch", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 0.1, 0);
    static const char *const parts[] = {
        "verdict: Training waited for data 71 % of the run. The CPU cores are the limit: this run keeps 1.97 of 2 "
        "usable cores busy, and JPEG decoding takes 95 % of the workers' CPU time.\n",
        "\n  decode cache            all frames fit in 859 MiB: 3.4 x (predicted), until the "
        "step is the limit, from the second epoch on; the first, which fills it, is slower  --decode-cache 859M\n",
        "\n  half-size frames        fewer pixels to decode: 1.28 x (predicted)  --image-size 320x240\n",
        "the 40 % rule: decoding is 95 % of a sample's time, more than 40 %: --decode-cache, fewer --cameras, "
        "or a copy with smaller or uncompressed frames (weir convert --image-size, --codec raw)\n",
        "\n  shares of the step: data wait 71.0 % | forward 20.0 % | batch release 1.0 % | unattributed 8.0 %\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        expect_text(made, parts[i]);
    page_cache_most(made);
    char *text = printed(made);
    cr_expect(strstr(text, "40 % rule") == NULL, "%s", text);
    free(text);
    free(made);
}

/* Both lines help a run that waits for data. A step with several timed parts has shares of its own. */
/* Workers that are always busy are the limit also if other processes use the other cores. */
Test(verdict, busy_workers_are_the_limit_whether_or_not_cores_are_idle)
{
    struct weir_verdict verdict;
    struct made *made = verdict_decoding();
    one_worker_while_others_leave_a_little(made);
    made->report.prof.machine.others_cores = 0.87;
    expect_text(made, "The one worker is the limit: it is busy 99 % of the time, and other processes use the other "
                      "core (of 2 cores, they use 0.87 and this run uses 0.99).\n"
                      "  also: JPEG decoding takes 95 % of the workers' CPU time.\n");
    expect_text(made, "  stop other processes    if this run had all 2 cores: ");
    expect_text(made, " (predicted), until the cores are the limit  --num-workers 2\n");
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect(verdict.advices[0].kind == WEIR_ADVICE_FREE_CORES && verdict.advices[0].ratio > 1.8 &&
                  verdict.advices[0].ratio <= 2.01,
              "%f", verdict.advices[0].ratio);
    made->report.prof.machine.cores = made->report.prof.machine.online = 8;
    made->report.prof.machine.part = 4;
    made->report.prof.machine.others_cores = 7;
    expect_text(made, "and other processes use the other cores (of 8 cores, they use 7.00 and this run uses 0.99).\n");
    free(made);
}

/* A worker on each core: nothing is known but that they are busy. */
Test(verdict, busy_workers_on_all_cores_are_not_in_doubt)
{
    struct weir_verdict verdict;
    struct made *made = verdict_decoding();
    verdict_set_workers(made, 2, 8.7, 0.3, 0.6, 0.4);
    expect_text(made, "The 2 workers are the limit: they are busy 96 % of the time.\n");
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_not(weir_verdict_has(&verdict, WEIR_CAUSE_CANNOT_TELL));
    cr_expect_gt(verdict.n_advices, 0);
    verdict_set_workers(made, 2, 8, 0.3, 0.6, 1.1);
    made->report.prof.machine.others_cores = 0.6;
    verdict_set_wait(made, 0.9);
    expect_text(made, "busy 86 % of their time (other processes use 0.60 cores).\n");
    free(made);
}

Test(verdict, the_rule_and_the_shares_are_left_out_if_nothing_waits)
{
    struct made *made = verdict_decoding();
    wait_4_percent(made);
    char *text = printed(made);
    cr_expect(strstr(text, "40 % rule") == NULL && strstr(text, "shares of the step") == NULL, "%s", text);
    free(text);
    verdict_add_row(made, "22_optimizer_step", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 3, 0);
    expect_text(made,
                "\n  shares of the step: data wait 4.9 % | forward 20.0 % | optimiser 30.0 % | unattributed 45.1 %\n");
    verdict_row(made, "22_optimizer_step")->total_s = 0;
    verdict_set_wait(made, 7);
    verdict_row(made, "20_train_forward_pass")->total_s = 0;
    text = printed(made);
    cr_expect(strstr(text, "shares of the step") == NULL, "nothing but the wait was timed: %s", text);
    free(text);
    free(made);
}

Test(verdict, every_cause_has_a_sentence)
{
    bool seen[WEIR_CAUSES] = {false};
    struct weir_verdict verdict;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made *made = verdict_decoding();
        cases[i].make(made);
        weir_verdict_make(&verdict, &made->report, &made->facts);
        for (int k = 0; k < verdict.n_causes; k++)
            seen[verdict.causes[k].cause] = true;
        char *text = printed(made);
        cr_expect_eq(strncmp(text, "verdict: ", 9), 0, "%s", text);
        cr_expect_null(strstr(text, "耗时:"), "only epoch lines may match grep 耗时:");
        cr_expect_null(strstr(text, "nan"), "%s", text);
        cr_expect_null(strstr(text, "inf "), "%s", text);
        free(text);
        free(made);
    }
    for (int cause = 0; cause < WEIR_CAUSES; cause++) {
        const char *name = weir_cause_name(WEIR_SUBJECT_LOADER, (enum weir_cause)cause);
        cr_expect(seen[cause] || !name || cause == WEIR_CAUSE_OTHER_CPU, "no case has the cause %s", name);
    }
}
