/* `weir report` on the lines of well-known training programs. The lines are as these programs wrote them. */
#include "tests/fixtures/report_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void widen(void)
{
    setenv("COLUMNS", "1000", 1); /* the tests are about the text, not about its layout */
}

TestSuite(log_trainers, .init = widen);

/* Asserts that the report of text contains each wanted piece, up to NULL. */
static void assert_shown(const char *text, const char *option, const char *const *wanted)
{
    struct report_output output = report_text(text, option);
    cr_assert_eq(output.status, 0, "%s", output.err);
    for (; *wanted; wanted++)
        cr_assert_not_null(strstr(output.out, *wanted), "wanted: %s\n%s", *wanted, output.out);
    report_release(output);
}

#define SHOWN(text, option, ...) assert_shown(text, option, (const char *const[]){__VA_ARGS__, NULL})

/* ---- LeRobot ---- */

#define LEROBOT(step, rest) "INFO 2026-11-27 09:12:43 ot_train.py:435 step:" step " smpl:20 ep:2 epch:0.71 " rest "\n"

Test(log_trainers, lerobot_0_4)
{
    static const char text[] =
        "\x1b[32mINFO\x1b[0m 2026-11-27 09:05:54 ot_train.py:337 Effective batch size: 2 x 1 = 2\n"
        "\rTraining:  17%|█▋        | 10/60 [00:07<00:37,  1.33step/s]" //
        LEROBOT("10", "loss:71.152 grdn:363.133 lr:1.0e-05 updt_s:0.749 data_s:0.444")
            LEROBOT("20", "loss:66.713 grdn:348.482 lr:1.0e-05 updt_s:0.814 data_s:0.076")
                LEROBOT("1K", "loss:62.863 grdn:331.741 lr:1.0e-05 updt_s:0.694 data_s:0.060");
    SHOWN(text, NULL, "plain training log: LeRobot's step lines, 3 rows\n",
          "verdict: Training waited for data 8 % of the time, so faster loading helps only a little. "
          "The mean step took 0.822s, the mean wait 0.068s.\n",
          "the first line, which includes the start of the workers, does not count\n",
          "`python -m weir watch -m lerobot.scripts.lerobot_train ...` does\n", "step  data_s  updt_s  line\n",
          "10    0.444s  0.749s     2\n", "1K    0.060s  0.694s     4\n");
    SHOWN(text, "--json", "\"data_bound\": \"partly\"", "\"name\": \"lerobot\"", "\"ranks\": 1,", "\"label\": \"1K\"",
          "\"updt_s\": 0.749,");
}

Test(log_trainers, lerobot_waits_that_round_to_zero_have_an_upper_limit)
{
    SHOWN(LEROBOT("1", "updt_s:0.020 data_s:0.000") LEROBOT("2", "updt_s:0.020 data_s:0.000"), NULL,
          "verdict: Training waited for data at most 2 % of the time, so data loading is not the limit. The mean ");
    SHOWN(LEROBOT("1", "updt_s:0.004 data_s:0.000"), NULL,
          "verdict: Cannot tell whether training waits for data: the log allows 0.0 to 12.5 % of the time.\n");
}

Test(log_trainers, lerobot_0_6_takes_the_maximum_over_ranks)
{
    static const char text[] = "INFO 2026-11-27 09:15:04 ot_train.py:446 Effective batch size: 2 x 2 = 4\n" //
        LEROBOT("8", "lr:1.0e-05 updt_s:0.300 data_s:3.037 smp/s:1 l1_loss:0.922 kld_loss:6.815")
            LEROBOT("16", "lr:1.0e-05 updt_s:0.300 data_s:0.100 smp/s:10 mem_gb:1.25 l1_loss:0.922 kld_loss:6.815")
                LEROBOT("24", "lr:1.0e-05 updt_s:0.300 data_s:0.100 smp/s:10 mem_gb:1.25 l1_loss:0.922");
    SHOWN(text, NULL, "each figure is its maximum over 2 ranks, not always of the same rank, so the sum of data_s and ",
          "waited for data at most 33 % of the time. It waited at least 25 %.", "step  data_s  updt_s  smp/s  line\n");
}

Test(log_trainers, lerobot_with_further_figures)
{
    SHOWN(LEROBOT("1K", "updt_s:0.050 data_s:0.010 prep_s:0.020 step_s:0.100"), NULL,
          "waited for data 10 % of the time", "step  data_s  prep_s  updt_s  step_s  line\n");
    SHOWN(LEROBOT("1K", "updt_s:0.070 data_s:0.010 prep_s:0.020"), NULL,
          "The mean step took 0.1s, the mean wait 0.01s.");
}

Test(log_trainers, many_rows_are_averaged)
{
    char text[4096] = "";
    for (int i = 1; i <= 32; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "step:%d updt_s:0.100 data_s:0.%03d\n", i, i);
    SHOWN(text, NULL, "means of 2 lines each; --wide prints every line\n", "31 .. 32  0.0315s  0.1000s    31\n");
    SHOWN(text, "--wide", "\n32    0.032s  0.100s    32\n");
}

/* ---- detectron2 and MMEngine ---- */

#define DETECTRON2(iter, time, data_time)                                                                              \
    "[11/27 09:20:11 d2.utils.events]:  eta: 0:01:40  iter: " iter "  total_loss: 1.923  loss_cls: 0.5317  "           \
    "time: " time "  last_time: 0.2532  data_time: " data_time "  last_data_time: 0.0070   lr: 0.0071733  "            \
    "max_mem: 1234M\n"

Test(log_trainers, detectron2_compares_with_the_mean_step_of_the_run)
{
    SHOWN(DETECTRON2("19", "0.5000", "0.4000") DETECTRON2("39", "0.4500", "0.1000")
              DETECTRON2("59", "0.4000", "0.1000"),
          NULL, "detectron2's step lines, 3 rows\n",
          "verdict: Training waited for data 25 % of the time. The mean step took 0.4s, the mean wait 0.1s.\n",
          "iter  data_time     time  line\n", "19      0.4000s  0.5000s     1\n");
}

#define MMENGINE(progress, time, data_time)                                                                            \
    "11/27 09:10:00 - mmengine - INFO - Epoch" progress "  lr: 1.0000e-02  eta: 0:00:01  time: " time                  \
    "  data_time: " data_time "  loss: -0.1088\n"

Test(log_trainers, mmengine_and_what_prints_alike)
{
    SHOWN(MMENGINE("(train) [1][ 10/50]", "0.0201", "0.0190") MMENGINE("(train) [1][ 20/50]", "0.0153", "0.0146")
              MMENGINE("(train)  [1][30/50]", "0.0224", "0.0217") MMENGINE("(val)  [1][10/50]", "9.0000", "9.0000"),
          NULL, "as MMEngine prints them, 3 rows\n", "Training waited for data 96 % of the time. ",
          "[1][ 10/50]    0.0190s  0.0201s     1\n");
    SHOWN("Epoch: [0]  [  20/1251]  eta: 0:15:52  lr: 0.0001  loss: 6.91 (6.92)  time: 0.7642  data: 0.0003  max mem: "
          "19231\n",
          NULL, "data loading is not the limit", "[0]  [  20/1251]    0.0003s  0.7642s     1\n");
}
