/* Verdicts of `weir report` on the tables of a plain log: shares, the data wait, the 40 % rule, and what helps. */
#include "tests/fixtures/report_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Typical tables of a training script: 40 batches of 8 samples, with two cameras. */
#define ACT_ROWS(decode, wait, forward)                                                                                \
    ROW("00_TOTAL_getitem", "100.00", "320")                                                                           \
    ROW("01_file_cache", "4.00", "320")                                                                                \
    ROW("02_read_qpos", "6.00", "320")                                                                                 \
    ROW("03_read_images_total", "70.00", "320")                                                                        \
    ROW("03a_read_one_camera", "69.00", "640") ROW("03b_image_decode", decode, "640") wait forward

static void widen(void)
{
    setenv("COLUMNS", "1000", 1); /* the tests are about the text, not about its layout */
}

TestSuite(log_verdict, .init = widen);

static struct report_output shown_as(const char *text, const char *option, const char *wanted)
{
    struct report_output output = report_text(text, option);
    cr_assert_eq(output.status, 0, "%s", output.err);
    cr_assert_not_null(strstr(output.out, wanted), "wanted: %s\n%s", wanted, output.out);
    return output;
}

static void assert_shown(const char *text, const char *option, const char *wanted)
{
    report_release(shown_as(text, option, wanted));
}

Test(log_verdict, a_classic_log_gets_shares_the_rule_and_a_verdict)
{
    static const char text[] = "Epoch 1/2 总耗时: 30.00s\nEpoch 2/2 总耗时: 20.00s\n" HEAD //
        ACT_ROWS("55.00", ROW("08_wait_for_data", "35.00", "40"), ROW("20_train_forward_pass", "10.00", "40")) RULE;
    struct report_output output = shown_as(text, NULL, "03b_image_decode            55.00s   55.0 %\n");
    static const char *const wanted[] = {
        "shares of a sample's time, 100.00s in total",
        "shares of the loop's time, 50.00s in total, from the epoch lines",
        "08_wait_for_data            35.00s   70.0 %\n",
        "unattributed                 5.00s   10.0 %\n",
        "verdict: Training waited for data 70 % of the time. ",
        "The largest part of a sample's time is 03b_image_decode, 55 %.\n",
        "the 40 % rule: decoding is 55 % of a sample's time, more than 40 %: a cache of decoded images, ",
        "such a log does not show CPU time, percentiles",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert_not_null(strstr(output.out, wanted[i]), "wanted: %s\n%s", wanted[i], output.out);
    report_release(output);
    assert_shown(text, "--json", "\"data_bound\": \"strongly\"");
    assert_shown(text, "--json", "\"data_wait_fraction\": 0.7");
    assert_shown(text, "--json", "\"decode_share\": 0.55");
    assert_shown(text, "--lang=zh", "verdict: Training waited for data 70 % of the time. ");
}

Test(log_verdict, a_loop_that_does_not_wait_for_data)
{
    static const char text[] = HEAD //
        ACT_ROWS("55.00", ROW("08_wait_for_data", "1.00", "40"), ROW("20_train_forward_pass", "99.00", "40")) RULE;
    assert_shown(text, NULL, "shares of the loop's time, 100.00s in total, the sum of its stages");
    assert_shown(text, NULL,
                 "verdict: Training waited for data 1 % of the time, so data loading is not the limit. "
                 "The largest part of the loop's time is 20_train_forward_pass, 99 %.\n");
    assert_shown(text, NULL, "more than 40 %, but nothing waits for it\n");
    assert_shown(
        HEAD ACT_ROWS("12.00", ROW("08_wait_for_data", "1.00", "40"), ROW("20_train_forward_pass", "9.00", "40")) RULE,
        NULL, "the 40 % rule: decoding is 12 % of a sample's time, not more than 40 %");
}

/* Without 08_wait_for_data, the time that other stages leave in the epochs is an upper bound on the wait. Without epoch
 * lines, there is no bound. */
Test(log_verdict, a_log_says_what_it_cannot_show)
{
    assert_shown(
        "Epoch 1/1 总耗时: 10.00s\n" HEAD ROW("20_train_forward_pass", "4.00", "40") RULE, NULL,
        "verdict: Cannot tell whether training waits for data: the log has no stage 08_wait_for_data, and the loop's "
        "other stages leave 60 % of the epochs' time for it; time the loader's next() as that stage.\n");
    assert_shown("Epoch 1/1 总耗时: 10.00s\n" HEAD ROW("20_train_forward_pass", "9.80", "40") RULE, NULL,
                 "verdict: Training waited for data at most 2 % of the time, so data loading is not the limit.");
    assert_shown(HEAD ROW("20_train_forward_pass", "4.00", "40") RULE, NULL,
                 "Cannot tell whether training waits for data: the log has no stage 08_wait_for_data");
    assert_shown(
        HEAD ROW("08_wait_for_data", "4.00", "40") RULE, NULL,
        "Cannot tell whether training waits for data: the log has neither epoch lines nor other stages of the loop");
    assert_shown(HEAD ROW("a", "4.00", "40") RULE, NULL, "the 40 % rule needs the stage 03b_image_decode");
    assert_shown(HEAD ROW("a", "4.00", "40") RULE, "--json", "\"data_wait_fraction\": null");
}

/* If tables are cumulative, the last one covers the whole log. If they restart from zero, they are added up. */
Test(log_verdict, shares_are_of_the_whole_log)
{
    static const char goes_on[] = HEAD ROW("00_TOTAL_getitem", "10.00", "10") ROW("03b_image_decode", "1.00", "10") //
        RULE HEAD ROW("00_TOTAL_getitem", "20.00", "20") ROW("03b_image_decode", "10.00", "20") RULE;
    assert_shown(goes_on, NULL, "03b_image_decode            10.00s   50.0 %\n");
    static const char from_zero[] = HEAD ROW("00_TOTAL_getitem", "10.00", "10") ROW("03b_image_decode", "1.00", "10") //
        RULE HEAD ROW("00_TOTAL_getitem", "5.00", "5") ROW("03b_image_decode", "2.00", "5") RULE;
    assert_shown(from_zero, NULL, "03b_image_decode             3.00s   20.0 %\n");
}

/* Stages in Weir's own tables are nested, so shares are relative to the sum of the innermost stages. */
Test(log_verdict, shares_of_what_weir_prints_in_chinese)
{
    static const char text[] =
        "统计范围: 整个运行, 第 1-2 轮 (共 2 轮), 墙钟 1.00s\n" HEAD ROW("00_TOTAL_getitem", "90.00", "10")
            ROW("03_read_images_total", "80.00", "10") ROW("03a_read_one_camera", "9.00", "20")
                ROW("03b_image_decode", "6.00", "20") ROW("03c_read_bytes", "2.00", "20") RULE;
    assert_shown(text, NULL, "shares of the workers' work, 8.00s in total");
    assert_shown(text, NULL, "03b_image_decode             6.00s   75.0 %\n");
}

/* ---- what helps, in logs without 08_wait_for_data ---- */

#define FORWARD_LOG                                                                                                    \
    HEAD ROW("20_train_forward_pass", "1140.00", "20857") ROW("21_backward", "400.00", "20857")                        \
        ROW("03_read_images_total", "300.00", "83430") ROW("22_optimizer_step", "160.00", "20857")                     \
            ROW("03b_image_decode", "100.00", "333720") RULE
#define BACKWARD_LOG                                                                                                   \
    HEAD ROW("21_backward", "1140.00", "20857") ROW("20_train_forward_pass", "400.00", "20857")                        \
        ROW("03_read_images_total", "300.00", "83430") ROW("22_optimizer_step", "160.00", "20857")                     \
            ROW("03b_image_decode", "100.00", "333720") RULE
#define READING_ROWS                                                                                                   \
    ROW("00_TOTAL_getitem", "1840.00", "83430")                                                                        \
    ROW("02_read_qpos", "700.00", "83430")                                                                             \
    ROW("03_read_images_total", "600.00", "83430")                                                                     \
    ROW("04_read_actions", "400.00", "83430")                                                                          \
    ROW("03b_image_decode", "200.00", "333720")                                                                        \
    ROW("05_to_tensor_normalize", "120.00", "83430")                                                                   \
    ROW("20_train_forward_pass", "80.00", "20857")                                                                     \
    ROW("21_backward", "60.00", "20857")                                                                               \
    ROW("22_optimizer_step", "20.00", "20857") ROW("01_file_cache", "20.00", "83430")
#define DECODING_LOG                                                                                                   \
    HEAD ROW("03_read_images_total", "1200.50", "83430") ROW("03b_image_decode", "1100.30", "333720")                  \
        ROW("20_train_forward_pass", "850.20", "20857") ROW("21_backward", "650.40", "20857") RULE

static void assert_not_shown(const char *text, const char *unwanted)
{
    struct report_output output = report_text(text, NULL);
    cr_assert_eq(output.status, 0, "%s", output.err);
    cr_assert_null(strstr(output.out, unwanted), "not wanted: %s\n%s", unwanted, output.out);
    report_release(output);
}

Test(log_verdict, a_long_forward_pass_gets_advice)
{
    assert_shown(FORWARD_LOG, NULL,
                 "\n  forward pass            57 % of all timed stages (20_train_forward_pass, 1140.00s): a smaller "
                 "model (hidden_dim, dim_feedforward), mixed precision (AMP), a larger batch_size if memory allows, or "
                 "a lighter backbone such as MobileNet\n");
    assert_shown(FORWARD_LOG, NULL, "if its timers do not call torch.cuda.synchronize(), ");
    assert_shown(FORWARD_LOG, "--json", "\"name\": \"forward\"");
    assert_not_shown(FORWARD_LOG, "  backward pass           ");
    assert_not_shown(FORWARD_LOG, "  loading data            ");
}

Test(log_verdict, a_long_backward_pass_gets_advice)
{
    assert_shown(
        BACKWARD_LOG, NULL,
        "\n  backward pass           57 % of all timed stages (21_backward, 1140.00s): a smaller chunk_size or "
        "model (hidden_dim), or AMP; to save memory, gradient accumulation in place of a large batch_size, or "
        "gradient checkpointing, which takes more time\n");
    assert_not_shown(BACKWARD_LOG, "  forward pass            ");
    /* a backward pass as long as the forward pass is the symptom, a shorter one is not */
    assert_shown(HEAD ROW("20_train_forward_pass", "100.00", "9") ROW("21_backward", "80.00", "9") RULE, NULL,
                 "\n  backward pass           44 % of all timed stages");
    assert_not_shown(HEAD ROW("20_train_forward_pass", "100.00", "9") ROW("21_backward", "70.00", "9") RULE,
                     "  backward pass           ");
}

/* The first calls contain what happens once, such as the start of the GPU. */
Test(log_verdict, few_steps_get_no_advice)
{
    static const char text[] = HEAD ROW("03_read_images_total", "900.00", "28")
        ROW("20_train_forward_pass", "80.00", "7") ROW("21_backward", "80.00", "7") RULE;
    assert_shown(text, NULL, "\n  too few training steps for advice on stages: 7 (it needs 8)\n");
    assert_not_shown(text, "  forward pass            ");
    assert_not_shown(text, "  loading data            ");
    assert_not_shown(text, "num_workers");
    assert_shown(text, "--json", "\"stage_advice\": []");
}

/* Stages nest, so 92 % is of 00_TOTAL_getitem, not of the sum of the rows. */
Test(log_verdict, long_loading_gets_advice)
{
    static const char text[] = HEAD READING_ROWS RULE;
    assert_shown(
        text, NULL,
        "\n  loading data            92 % of all timed stages (01 to 05, 1840.00s): more workers (num_workers) "
        "if memory allows, an SSD, or another format (weir convert --to lmdb, or tfrecord)\n");
    assert_shown(
        text, NULL,
        "\n  workers: loading took 1840.00s in all processes together, the loop's timed stages 160.00s; the log "
        "does not show num_workers: with 0, training waits for all of the loading, 92 % of the time; from "
        "num_workers=12 on, loading could keep up\n");
    assert_shown(text, "--json", "\"workers_least\": 12");
    assert_not_shown(text, "  forward pass            ");
}

/* A script collates after __getitem__, so that is a part of loading but not of a sample. */
Test(log_verdict, collating_is_no_part_of_a_sample)
{
    static const char text[] = HEAD ROW("00_TOTAL_getitem", "10.00", "40") ROW("06_collate", "30.00", "10")
        ROW("20_train_forward_pass", "40.00", "10") RULE;
    assert_not_shown(text, "300.0 %");
    assert_shown(text, NULL, "workers: loading took 40.00s in all processes together, ");
    assert_shown(text, NULL, "\n  loading data            50 % of all timed stages (01 to 06, 40.00s): ");
}

/* Workers load in parallel with the loop, so their time is not the loop's. */
Test(log_verdict, loading_is_not_the_loops_time)
{
    assert_shown("Epoch 1/1 总耗时: 500.00s\n" HEAD READING_ROWS RULE, NULL,
                 "the epochs took 500.00s, so workers load in parallel; from num_workers=12 on, loading could keep up");
    assert_shown(
        "Epoch 1/1 总耗时: 500.00s\n" HEAD READING_ROWS RULE, NULL,
        "\n  loading data            at most 68 % of the loop's time (the epochs' time in no stage, 340.00s): ");
    static const char hidden[] = "Epoch 1/1 总耗时: 163.00s\n" HEAD READING_ROWS RULE;
    assert_shown(hidden, NULL, "Training waited for data at most 2 % of the time, so data loading is not the limit.");
    assert_shown(hidden, NULL, "\n  forward pass            49 % of the loop's time");
    assert_not_shown(hidden, "  loading data            ");
    assert_not_shown(hidden, "num_workers");
}

Test(log_verdict, long_decoding_gets_advice)
{
    assert_shown(DECODING_LOG, NULL,
                 "the 40 % rule: decoding is 92 % of a sample's time, more than 40 %: a cache of decoded images, fewer "
                 "cameras, smaller images, or uncompressed ones (weir convert --codec raw)\n");
    assert_not_shown(DECODING_LOG, "  loading data            ");
    assert_shown(HEAD ROW("03_read_images_total", "50.00", "9") ROW("03b_image_decode", "40.00", "9")
                     ROW("20_train_forward_pass", "950.00", "9") RULE,
                 NULL, "more than 40 %, but loading is at most 5 % of all timed stages: improve other parts first\n");
}

/* The published shares belong to a script's table with the main stages of ACT. Weir's own loader is another one. */
Test(log_verdict, shares_stand_beside_one_published_example)
{
    static const char title[] = "shares of all timed stages, 2701.10s in total, and one published example (4 cameras, "
                                "batch_size 4, chunk_size 20):\n";
    assert_shown(DECODING_LOG, NULL, title);
    assert_shown(DECODING_LOG, NULL, "image decoding            1100.30s   40.7 %  example 40-50 %\n");
    assert_shown(DECODING_LOG, NULL, "forward pass               850.20s   31.5 %  example 20-30 %\n");
    assert_shown(DECODING_LOG, NULL, "backward pass              650.40s   24.1 %  example 15-25 %\n");
    assert_shown(DECODING_LOG, NULL, "reading data               100.20s    3.7 %  example  5-10 %\n");
    assert_shown(DECODING_LOG, "--json", "\"example\": \"40-50 %\"");
    assert_not_shown("统计范围: 整个运行, 第 1-2 轮 (共 2 轮), 墙钟 1.00s\n" DECODING_LOG, "published");
    assert_not_shown(HEAD ROW("20_train_forward_pass", "1.00", "9") RULE, "published");
    assert_shown(HEAD ROW("20_train_forward_pass", "1.00", "9") RULE, "--json", "\"published_example\": null");
}

/* Tables of Weir name its options. weir run only simulates a step, so that gets no advice. */
Test(log_verdict, weirs_own_tables_get_its_options)
{
    static const char trained[] =
        "统计范围: 整个运行, 第 1-2 轮 (共 2 轮), 墙钟 1.00s\n" HEAD ROW("03b_image_decode", "6.00", "20")
            ROW("08_wait_for_data", "0.10", "9") ROW("20_train_forward_pass", "7.00", "9")
                ROW("21_backward", "6.00", "9") RULE;
    assert_shown(trained, NULL, "(20_train_forward_pass, 7.00s): a smaller model (--hidden-dim, --dim-feedforward), ");
    assert_shown(trained, NULL, "(21_backward, 6.00s): a smaller --chunk-size or --hidden-dim, ");
    static const char run[] =
        "统计范围: 整个运行, 第 1-2 轮 (共 2 轮), 墙钟 1.00s\n" HEAD ROW("03b_image_decode", "6.00", "20")
            ROW("08_wait_for_data", "5.00", "9") ROW("20_train_forward_pass", "7.00", "9") RULE;
    assert_not_shown(run, "  forward pass            ");
    assert_not_shown(trained, "torch.cuda.synchronize()");
    assert_shown(run, NULL, "more than 40 %: --decode-cache, fewer --cameras, ");
}

/* A Python program with weir.Loader: tables since the last one, then all of its time. The script owns the step. */
#define LOADER_TABLE(range, decode, forward, backward, calls)                                                          \
    "统计范围: " range ", 墙钟 1.00s\n" HEAD ROW("21_backward", backward, calls)                                       \
        ROW("20_train_forward_pass", forward, calls) ROW("03b_image_decode", decode, calls) RULE

Test(log_verdict, all_of_a_programs_time_is_not_added_to_its_periods)
{
    static const char text[] = LOADER_TABLE("上次统计以来", "1.00", "4.00", "6.00", "10")
        LOADER_TABLE("测量部分", "1.00", "4.00", "6.00", "10") LOADER_TABLE("上次统计以来", "0.50", "2.00", "3.00", "5")
            LOADER_TABLE("测量部分", "1.50", "6.00", "9.00", "15");
    assert_shown(text, NULL, "21_backward                  9.00s   60.0 %\n");
    assert_shown(text, NULL, "(20_train_forward_pass, 6.00s): a smaller model (hidden_dim, dim_feedforward), mixed ");
}

/* The tables of a loop without weir.Loader do not say what they cover. */
Test(log_verdict, a_last_table_with_the_sums_of_the_others_is_the_whole)
{
    static const char text[] = HEAD ROW("21_backward", "4.00", "10") ROW("20_train_forward_pass", "4.00", "10") //
        RULE HEAD ROW("21_backward", "3.00", "8") ROW("20_train_forward_pass", "2.00", "8") RULE;
    static const char whole[] = HEAD ROW("21_backward", "7.01", "18") ROW("20_train_forward_pass", "6.00", "18") RULE;
    static const char another[] = HEAD ROW("21_backward", "7.01", "17") ROW("20_train_forward_pass", "6.00", "17") RULE;
    char both[2000];
    snprintf(both, sizeof both, "%s%s", text, whole);
    assert_shown(both, NULL, "(21_backward, 7.01s)");
    snprintf(both, sizeof both, "%s%s", text, another);
    assert_shown(both, NULL, "(21_backward, 14.01s)");
}

Test(log_verdict, means_under_ten_microseconds_are_printed_in_microseconds)
{
    assert_shown(HEAD "a | 总计: 0.00s | 调用: 8次 | 平均: 0.0023ms\n" RULE, NULL, "a                2.3us\n");
}
