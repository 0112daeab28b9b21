/* Verdicts of `weir report` on the tables of a plain log: shares, the data wait, and the 40 % rule. */
#include "tests/fixtures/report_fixture.h"

#include <criterion/criterion.h>
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
        "the 40 % rule: decoding is 55 % of a sample's time, more than 40 %: store decoded or smaller frames",
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

Test(log_verdict, means_under_ten_microseconds_are_printed_in_microseconds)
{
    assert_shown(HEAD "a | 总计: 0.00s | 调用: 8次 | 平均: 0.0023ms\n" RULE, NULL, "a                2.3us\n");
}
