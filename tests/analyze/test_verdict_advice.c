/* Advice on synthetic reports: predicted gains, and machine resources that the run does not use. */
#include "analyze/verdict/verdict_priv.h"
#include "tests/fixtures/verdict_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_verdict_advice *advice(const struct weir_verdict *verdict, enum weir_advice_kind kind)
{
    for (int i = 0; i < verdict->n_advices; i++)
        if (verdict->advices[i].kind == kind)
            return &verdict->advices[i];
    return NULL;
}

Test(verdict_advice, a_cache_gives_no_more_than_the_step_allows)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, &made->report, NULL);
    const struct weir_verdict_advice *cache = advice(&verdict, WEIR_ADVICE_CACHE);
    cr_assert_not_null(cache);
    double now = verdict.demands.bound_rate, step = 16000 / (10 - 7.1);
    cr_expect_float_eq(now, 16000 / 9.9, 1, "two workers, busy for 9.9 s of 10 s");
    cr_expect_float_eq(cache->ratio, step / now, 1e-6);
    cr_expect_eq(cache->limit, WEIR_RESOURCE_CONSUMER);
    cr_expect_str_eq(cache->flag, "--decode-cache 859M");
    verdict_set_wait(made, 9.999); /* the step takes almost no time, so the workers are the limit */
    weir_verdict_make(&verdict, &made->report, NULL);
    cache = advice(&verdict, WEIR_ADVICE_CACHE);
    double copy_s = 640 * 480 * 3 / 1e10, cpu_s = made->report.cpu_s / 16000 - 2 * 9.8 / 16000 + copy_s;
    cr_expect_float_eq(cache->ratio, 2 / cpu_s / now, 0.01);
    made->report.setup.memory_free_bytes = 562500000; /* 80 % of this memory holds half of the frames */
    weir_verdict_make(&verdict, &made->report, NULL);
    cache = advice(&verdict, WEIR_ADVICE_CACHE);
    cr_expect_float_eq(cache->part, 0.5, 1e-9);
    cr_expect(cache->ratio > 1.7 && cache->ratio < 2.1, "%f", cache->ratio);
    made->report.cache.budget_bytes = 1000000000;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_CACHE), "a cache for all frames exists");
    free(made);
}

/* Requests in flight follow the rate, with a quarter to spare, and the next resource limits the gain. */
Test(verdict_advice, more_in_flight_are_what_the_gain_needs)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    char *text = NULL;
    size_t size = 0;
    verdict_add_server(made, 80, 80, 80);
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_assert_eq(verdict.causes[0].cause, WEIR_CAUSE_FEW_IN_FLIGHT);
    const struct weir_verdict_advice *more = advice(&verdict, WEIR_ADVICE_IN_FLIGHT);
    cr_assert_not_null(more);
    cr_expect(more->ratio > 1.2 && more->ratio <= verdict.causes[0].gain + 1e-9, "%f", more->ratio);
    int depth = atoi(more->flag + strlen("--io-depth "));
    cr_expect(depth >= 1.25 * more->ratio * 80 && depth <= 1.25 * more->ratio * 80 + 1, "%s", more->flag);
    FILE *out = open_memstream(&text, &size);
    weir_verdict_lines(out, &verdict, &made->report);
    fclose(out);
    cr_expect_not_null(
        strstr(text, "oo few requests to a.example are in flight: 80 on average, at most 80 (--io-depth)"), "%s", text);
    free(text);
    made->report.server.in_flight = made->report.server.limit = 900; /* 1,024 are the most */
    weir_verdict_make(&verdict, &made->report, NULL);
    more = advice(&verdict, WEIR_ADVICE_IN_FLIGHT);
    cr_assert_not_null(more);
    cr_expect_str_eq(more->flag, "--io-depth 1024");
    cr_expect_float_eq(more->ratio, 1024.0 / 900, 1e-6);
    free(made);
}

/* The hypervisor takes this time, so stopping processes on this machine would not give it back. */
Test(verdict_advice, steal_is_not_blamed_on_processes)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    made->report.prof.machine.steal_cores = 0.4;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_assert_eq(verdict.causes[0].cause, WEIR_CAUSE_HOST);
    const struct weir_verdict_advice *host = advice(&verdict, WEIR_ADVICE_HOST);
    cr_assert_not_null(host);
    cr_expect(host->ratio > 1.1 && host->ratio < 1.4, "%f: a fifth of the time", host->ratio);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_FREE_CORES));
    free(made);
}

/* Sizes are rounded up by at most a tenth. Rounding 1.3 GB up to 2G could exceed the free memory. */
Test(verdict_advice, bytes_as_they_are_typed)
{
    static const struct {
        double bytes;
        const char *flag, *text;
    } budgets[] = {{0, "1M", "1 MiB"},          {859 << 20, "859M", "859 MiB"}, {1.3e9, "1240M", "1240 MiB"},
                   {10e9, "9537M", "9537 MiB"}, {10737418240, "10G", "10 GiB"}, {11e9, "11G", "11 GiB"}};
    char text[24];
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        weir_cache_bytes_text(text, budgets[i].bytes, true);
        cr_expect_str_eq(text, budgets[i].flag);
        weir_cache_bytes_text(text, budgets[i].bytes, false);
        cr_expect_str_eq(text, budgets[i].text);
    }
}

/* image_bytes takes precedence over the output size, since cameras may differ in size. */
Test(verdict_advice, bytes_of_an_image)
{
    struct weir_report_setup setup = {.out_width = 4, .out_height = 2, .normalised = true};
    cr_expect_float_eq(weir_setup_image_bytes(&setup), 4 * 2 * 3 * 4, 0);
    setup.image_bytes = 1000;
    cr_expect_float_eq(weir_setup_image_bytes(&setup), 1000, 0);
}

/* Two workers decode on the CPU, while the GPU has idle JPEG engines. */
Test(verdict_advice, idle_jpeg_engines_come_before_more_workers)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    made->report.prof.machine.cores = made->report.prof.machine.part = made->report.prof.machine.online = 16;
    verdict_set_wait(made, 9.5);
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].cause, WEIR_CAUSE_TOO_FEW_WORKERS);
    cr_expect_eq(verdict.advices[0].kind, WEIR_ADVICE_MORE_WORKERS);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_ENGINES), "batches stay on the CPU");
    made->report.setup.device = 0;
    made->report.gpu.used = true;
    made->report.setup.jpeg_engines = 7;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_assert_eq(verdict.advices[0].kind, WEIR_ADVICE_ENGINES);
    cr_expect_str_eq(verdict.advices[0].flag, "--decoder auto");
    const struct weir_verdict_advice *workers = advice(&verdict, WEIR_ADVICE_MORE_WORKERS);
    cr_assert_not_null(workers);
    cr_expect(verdict.advices[0].ratio > 1.5 * workers->ratio, "%f, %f", verdict.advices[0].ratio, workers->ratio);
    double most = 7 * WEIR_VERDICT_ENGINE_PIXELS / (640 * 480) / verdict.demands.bound_rate;
    cr_expect_leq(verdict.advices[0].ratio, most * 1.0001, "the ratio exceeds the engines' decode rate");
    made->report.gpu.decode.n_engines = 1;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_ENGINES), "the engines are in use");
    free(made);
}

/* Decoding is the main cause, and a tenth of the CPU time is spent on conversion to floats. */
Test(verdict_advice, floats_that_cost_a_tenth_are_worth_a_line)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    struct weir_report_row *decode = verdict_row(made, "03b_image_decode");
    struct weir_report_row *convert =
        verdict_add_row(made, "05_to_tensor_normalize", WEIR_KIND_WORK, WEIR_SIDE_WORKER, 3, 3);
    decode->self_s = decode->cpu_s = decode->cpu_s - 3;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_U8), "the images are not floats");
    made->report.setup.normalised = true;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_eq(verdict.causes[0].cause, WEIR_CAUSE_DECODE);
    const struct weir_verdict_advice *u8 = advice(&verdict, WEIR_ADVICE_U8);
    cr_assert_not_null(u8);
    cr_expect(u8->ratio > 1.1 && u8->ratio < 1.25, "%f", u8->ratio);
    convert->self_s = convert->cpu_s = 1.5;
    decode->self_s = decode->cpu_s = decode->cpu_s + 1.5;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_U8), "7 %%");
    free(made);
}

/* A report of videos: all decoding is that of pictures. The key picture of a group takes twice as long as another. */
static struct made *make_videos(double groups, double group_pictures, double decoded, double used)
{
    struct made *made = verdict_decoding();
    struct weir_report_row *row = verdict_row(made, "03b_image_decode");
    snprintf(row->name, sizeof row->name, "03j_video_decode");
    row->total_s = row->self_s;
    made->report.setup.kind = WEIR_FRAME_VIDEO;
    made->report.setup.frames_bytes = 0; /* no advice about a cache */
    made->report.video.counts = (struct weir_video_counts){(uint64_t)groups,
                                                           (uint64_t)(groups * group_pictures),
                                                           (uint64_t)decoded,
                                                           (uint64_t)used,
                                                           row->total_s * 2 * groups / (decoded + groups),
                                                           0};
    verdict_set_wait(made, 9.999);
    return made;
}

Test(verdict_advice, distant_key_frames_cost_the_pictures_before_a_frame)
{
    struct weir_verdict verdict;
    struct made *made = make_videos(1000, 20, 10500, 1000); /* one frame of each group */
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_assert_eq(verdict.causes[0].cause, WEIR_CAUSE_DECODE);
    const struct weir_verdict_advice *closer = advice(&verdict, WEIR_ADVICE_KEY_FRAMES);
    cr_assert_not_null(closer);
    cr_expect_float_eq(closer->figure, 10.5, 1e-9);
    double part = verdict.demands.cpu[WEIR_CPU_DECODE], left = 1 - part + part * 2.5 / 11.5;
    cr_expect_float_eq(closer->ratio, 1 / left, 0.1 / left, "%f instead of %f", closer->ratio, 1 / left);
    free(made);
    made = make_videos(1000, 20, 20000, 20000); /* all frames are used: a key frame costs no more than others */
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_KEY_FRAMES));
    free(made);
}

Test(verdict_advice, key_frames_at_every_second_picture_are_close)
{
    struct weir_verdict verdict;
    struct made *made = make_videos(1000, 2, 1500, 1000);
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_KEY_FRAMES));
    free(made);
    made = make_videos(1000, 2, 1800, 1400);
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_KEY_FRAMES), "some groups are used twice");
    free(made);
}

Test(verdict_advice, jpegs_in_place_of_videos_are_measured)
{
    struct weir_verdict verdict;
    struct made *made = make_videos(1000, 2, 1500, 1000);
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_JPEGS), "not measured");
    double decode_s = weir_demands_worker_cpu_s(&verdict.demands) * verdict.demands.cpu[WEIR_CPU_DECODE];
    made->report.video.jpeg_s = decode_s / 2;
    weir_verdict_make(&verdict, &made->report, NULL);
    const struct weir_verdict_advice *jpegs = advice(&verdict, WEIR_ADVICE_JPEGS);
    cr_assert_not_null(jpegs);
    cr_expect_str_eq(jpegs->flag, "weir convert --frames jpeg:95");
    cr_expect(jpegs->ratio > 1.8 && jpegs->ratio < 2.05, "%f", jpegs->ratio);
    made->report.video.jpeg_s = decode_s;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_JPEGS), "as slow as the video");
    free(made);
}

Test(verdict_advice, opening_that_took_long_is_worth_a_line)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    made->report.setup.index_s = 1.1;
    weir_verdict_make(&verdict, &made->report, NULL);
    const struct weir_verdict_advice *index = advice(&verdict, WEIR_ADVICE_INDEX);
    cr_assert_not_null(index);
    cr_expect_str_eq(index->flag, "--index FILE");
    made->report.setup.indexed = true;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_INDEX));
    made->report.setup.indexed = false;
    made->report.setup.index_s = 0.9;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_INDEX));
    free(made);
}

Test(verdict_advice, workers_and_cores_are_predicted_by_what_is_next)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, &made->report, NULL);
    const struct weir_verdict_advice *cores = advice(&verdict, WEIR_ADVICE_MORE_CORES);
    cr_assert_not_null(cores);
    cr_expect_float_eq(cores->ratio, 1.5, 0.02);
    cr_expect_float_eq(cores->figure, 16000 / made->report.cpu_s, 1);
    verdict_set_workers(made, 1, 9.8, 0, 0, 0.1);
    weir_verdict_make(&verdict, &made->report, NULL);
    const struct weir_verdict_advice *workers = advice(&verdict, WEIR_ADVICE_MORE_WORKERS);
    cr_assert_not_null(workers);
    cr_expect(workers->ratio > 1.9 && workers->ratio <= 2.1, "%f", workers->ratio);
    cr_expect_eq(workers->limit, WEIR_RESOURCE_CORES);
    cr_expect_str_eq(workers->flag, "--num-workers 2");
    verdict_set_workers(made, 8, 2.45, 7.4, 0, 0.1);
    weir_verdict_make(&verdict, &made->report, NULL);
    const struct weir_verdict_advice *fewer = advice(&verdict, WEIR_ADVICE_FEWER_WORKERS);
    cr_assert_not_null(fewer);
    cr_expect_str_eq(fewer->flag, "--num-workers 2");
    free(made);
}

Test(verdict_advice, a_run_with_more_workers_can_refute_the_advice)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    verdict_set_workers(made, 1, 9.8, 0, 0, 0.1);
    made->facts.more_workers = 1.06;
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect(weir_verdict_has(&verdict, WEIR_CAUSE_TOO_FEW_WORKERS));
    cr_expect_not_null(advice(&verdict, WEIR_ADVICE_MORE_WORKERS));
    made->facts.more_workers = 1.04;
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect_not(weir_verdict_has(&verdict, WEIR_CAUSE_TOO_FEW_WORKERS));
    cr_expect_null(advice(&verdict, WEIR_ADVICE_MORE_WORKERS));
    verdict_set_workers(made, 2, 2, 0, 7.9, 0.1); /* slow reads */
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_MORE_WORKERS));
    made->facts.more_workers = 0; /* not measured */
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect_not_null(advice(&verdict, WEIR_ADVICE_MORE_WORKERS));
    free(made);
}

/* A loading thread that mostly sleeps in reads gains at most a factor equal to the number of workers. There are no more
 * workers than cores that other processes leave, if the workers do not sleep. */
Test(verdict_advice, workers_in_place_of_none_give_no_more_than_their_number)
{
    struct made *made = verdict_decoding();
    struct weir_verdict verdict;
    verdict_set_workers(made, 1, 1, 0, 8.9, 0.1);
    verdict_set_wait(made, 9.999);
    made->report.setup.workers = 0;
    weir_verdict_make(&verdict, &made->report, NULL);
    const struct weir_verdict_advice *workers = advice(&verdict, WEIR_ADVICE_MORE_WORKERS);
    cr_assert_not_null(workers);
    cr_expect_str_eq(workers->flag, "--num-workers 8");
    cr_expect(workers->ratio > 6 && workers->ratio <= 8.1, "%f", workers->ratio);
    verdict_set_workers(made, 1, 5, 4.9, 0, 0.1);
    made->report.prof.machine.others_cores = 0.2;
    made->report.setup.workers = 0;
    weir_verdict_make(&verdict, &made->report, NULL);
    workers = advice(&verdict, WEIR_ADVICE_MORE_WORKERS);
    cr_assert_not_null(workers);
    cr_expect_str_eq(workers->flag, "--num-workers 2");
    cr_expect(workers->ratio <= 2.1, "%f", workers->ratio);
    made->report.prof.machine.others_cores = 1.5;
    weir_verdict_make(&verdict, &made->report, NULL);
    cr_expect_null(advice(&verdict, WEIR_ADVICE_MORE_WORKERS), "no core is idle");
    free(made);
}

Test(verdict_advice, idle_workers_could_have_more_of_the_cores_that_others_share)
{
    struct made *made = verdict_decoding();
    struct weir_demands demands;
    verdict_set_workers(made, 2, 0.5, 1.5, 0, 7.9);
    made->report.prof.machine.others_cores = 1.5;
    weir_demands_make(&demands, &made->report);
    cr_expect_float_eq(demands.reachable, 0.5, 1e-9, "two workers: 0.5 s on a core and 2 s waiting for one");
    free(made);
}

/* ---- the step ---- */

static char *lines_of(const struct made *made)
{
    struct weir_verdict verdict;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    weir_verdict_make(&verdict, &made->report, NULL);
    weir_verdict_lines(out, &verdict, &made->report);
    fclose(out);
    return text;
}

static void expect_lines(const struct made *made, const char *wanted, bool there)
{
    char *text = lines_of(made);
    cr_expect_eq(strstr(text, wanted) != NULL, there, "%s: %s\n%s", there ? "wanted" : "not wanted", wanted, text);
    free(text);
}

/* The step of weir train has options; that of a program with Weir's loader is ACT's in PyTorch. */
Test(verdict_advice, a_long_step_gets_advice_in_the_words_of_its_owner)
{
    struct made *made = verdict_decoding();
    verdict_set_wait(made, 0.1);
    verdict_row(made, "20_train_forward_pass")->total_s = 4;
    verdict_add_row(made, "21_backward", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 5, 5);
    made->report.steps.own_step = true;
    expect_lines(made,
                 "\n  forward pass            40 % of the training time (20_train_forward_pass, 4.00s): a smaller "
                 "model (--hidden-dim, --dim-feedforward), smaller or fewer images (--image-size, --cameras), a "
                 "larger --batch-size, or a GPU (--device cuda, --amp)\n",
                 true);
    expect_lines(made,
                 "\n  backward pass           50 % of the training time (21_backward, 5.00s): a smaller "
                 "--chunk-size or --hidden-dim, smaller images (--image-size), or --grad-accumulation in place "
                 "of a large --batch-size\n",
                 true);
    made->report.steps.own_step = false;
    expect_lines(made, "a smaller model (hidden_dim, dim_feedforward), mixed precision (AMP)", true);
    made->report.steps.step_ms = 5;
    expect_lines(made, "  forward pass  ", false);
    made->report.steps.step_ms = 0;
    made->report.steps.train_batches = 3;
    expect_lines(made, "the run was too short", true);
    expect_lines(made, "  forward pass  ", false);
    free(made);
}

/* A step that takes far less time than the wait is not worth advice. */
Test(verdict_advice, a_short_step_gets_no_advice)
{
    struct made *made = verdict_decoding();
    verdict_add_row(made, "21_backward", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 0.5, 0.5);
    made->report.steps.own_step = true;
    expect_lines(made, "  forward pass  ", false);
    expect_lines(made, "  backward pass  ", false);
    free(made);
}
