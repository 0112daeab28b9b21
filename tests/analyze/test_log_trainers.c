/* `weir report` on the lines of well-known training programs. The lines are as these programs wrote them. */
#include "tests/fixtures/report_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Asserts that the report with --lang zh contains the classic table with these rows, and that it can be read back. */
static void assert_chinese(const char *text, const char *rows)
{
    char path[] = "/tmp/weir-zh-XXXXXX", wanted[1024];
    int fd = mkstemp(path);
    snprintf(wanted, sizeof wanted, "%s%s%s", HEAD "------------------------------------------------------------\n",
             rows, RULE);
    struct report_output output = report_text(text, "--lang=zh");
    cr_assert_not_null(strstr(output.out, wanted), "wanted: %s\n%s", wanted, output.out);
    cr_assert_eq(write(fd, output.out, strlen(output.out)), (ssize_t)strlen(output.out));
    close(fd);
    report_release(output);
    output = report_file(path, NULL);
    cr_assert_not_null(strstr(output.out, "plain training log: 1 tables, 0 epochs\n"), "%s", output.out);
    report_release(output);
    unlink(path);
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

Test(log_trainers, rows_without_a_label)
{
    SHOWN("updt_s:0.020 data_s:0.001\n", NULL, "-     0.001s  0.020s     1\n");
    SHOWN("iter:\ntime: 1 data_time: 0.5 [\n", NULL, "-          0.5s  1.0s     2\n");
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
    "[11/27 09:36:31 d2.utils.events]:  eta: 0:00:01  iter: " iter "  total_loss: 0.5822  time: " time                 \
    "  data_time: " data_time "  lr: 0.01  \n"

/* All steps but the first ones took 14.2 ms, of which 4.2 ms waiting. */
Test(log_trainers, detectron2_prints_the_mean_step_since_the_start)
{
    SHOWN(DETECTRON2("19", "0.0225", "0.0179") DETECTRON2("39", "0.0182", "0.0043") DETECTRON2("59", "0.0168", "0.0042")
              DETECTRON2("79", "0.0162", "0.0043") DETECTRON2("99", "0.0158", "0.0041"),
          NULL, "detectron2's step lines, 5 rows\n",
          "verdict: Training waited for data 30 % of the time. The mean step took 0.01429s, the mean wait 0.004225s.\n",
          "iter  data_time     time  line\n", "19      0.0179s  0.0225s     1\n");
    SHOWN(
        "[09/01 10:00:00 d2.utils.events]:  eta: 0:01:40  iter: 19  total_loss: 1.923  loss_cls: 0.5317  time: 0.4000  "
        "last_time: 0.2532  data_time: 0.1000  last_data_time: 0.0070   lr: 0.0071733  max_mem: 1234M\n",
        NULL, "verdict: Training waited for data 25 % of the time. The mean step took 0.4s, the mean wait 0.1s.\n");
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

Test(log_trainers, mmcv_rounds_to_milliseconds)
{
    SHOWN("2021-01-01 10:00:00,123 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 5:40:33, time: 0.005, "
          "data_time: 0.000, memory: 2900, loss: 1.2\n",
          NULL, "the log allows 0.0 to 11.1 % of the time.\n", "[1][50/7330]     0.000s  0.005s     1\n");
}

/* ---- Lightning's SimpleProfiler ---- */

#define RULED "-----------------------------------------------------------------------------------------------\n"
#define ACTION(name, mean, calls, total, percent)                                                                      \
    "|  " name "\t|  " mean "\t|  " calls "\t|  " total "\t|  " percent "\t|\n"
#define EXTENDED                                                                                                       \
    "FIT Profiler Report\n\n" RULED ACTION("Action", "Mean duration (s)", "Num calls", "Total time (s)",               \
                                           "Percentage %")                                                             \
        RULED ACTION("Total", "-              ", "951", "0.31967", "100 %")                                            \
            RULED ACTION("run_training_epoch", "0.14552", "2", "0.29105", "91.048")

Test(log_trainers, lightning)
{
    SHOWN(EXTENDED ACTION("[_TrainingEpochLoop].train_dataloader_next         ", "0.0051047      ", "20", "0.10209",
                          "31.938") ACTION("run_training_batch", "0.0031889", "20", "0.063778", "19.951")
              ACTION("[LightningModule]M.on_train_start", "6.81e-07       ", "1", "6.81e-07", "0.00021304") RULED
          "| not an action |\n",
          NULL, "the table of Lightning's SimpleProfiler, 5 rows\n",
          "verdict: Training waited for data 35 % of the time. The mean step took 0.01455s, the mean wait 0.005105s.\n",
          "actions contain each other, so percentages do not add up\n",
          "[_TrainingEpochLoop].train_dataloader_next    5.10ms     20  102.09ms     31.94     9\n",
          "[LightningModule]M.on_train_start              681ns      1     681ns  0.000213    11\n");
}

Test(log_trainers, lightning_with_validation_inside_the_epoch)
{
    SHOWN(EXTENDED ACTION("[_EvaluationLoop].val_next", "0.0047245", "22", "0.10394", "32.515")
              ACTION("[_TrainingEpochLoop].train_dataloader_next", "0.0051047", "20", "0.10209", "31.938")
                  ACTION("run_training_batch", "0.0031889", "20", "0.063778", "19.951"),
          NULL, "verdict: Training waited for data at most 62 % of the time. It waited at least 35 %.\n");
}

Test(log_trainers, lightning_without_calls)
{
    SHOWN("|  Action                    \t|  Mean duration (s)\t|  Total time (s) \t|\n" RULED
          "|  run_training_epoch        \t|  0.13877        \t|  0.27754        \t|\n"
          "|  [_TrainingEpochLoop].train_dataloader_next\t|  0.0046235      \t|  0.092469       \t|\n" RULED,
          NULL, "Training waited for data 33 % of the time. ", "action                                      ");
    SHOWN("|  Action                    \t|  Mean duration (s)\t|  Total time (s) \t|\n"
          "|  [LightningModule]M.setup  \t|  0.13877        \t|  0.27754        \t|\n",
          NULL, "verdict: This log does not record the wait for data.\n");
}

/* ---- TraceML ---- */

#define METRICS(step, wait)                                                                                            \
    "{\"input_wait_ms\": " wait ",\n \"step_time_ms\": " step ",\n \"dataloader_fetch_cpu_ms\": 23.417,\n"             \
    " \"h2d_ms\": null, \"compute_ms\": 0.4128, \"residual_ms\": 14.21}"
#define SUMMARY(average, rows)                                                                                         \
    "{\n  \"schema_version\": 1.9,\n  \"step_time\": {\"global\": {\"window\": {\"steps_analyzed\": 200},\n"           \
    "  \"average\": " average "},\n \"groups\": {\"rows\": " rows "}},\n  \"text\": \"+--+\\n| \\u2713 |\"\n}\n"

Test(log_trainers, traceml)
{
    SHOWN(SUMMARY(METRICS("38.0423", "23.4173"), "{}"), NULL, "the summary of TraceML, 1 row\n",
          "verdict: Training waited for data 62 % of the time. The mean step took 0.03804s, the mean wait 0.02342s.\n",
          "means of 200 steps\n", "rank     step  input_wait  fetch (CPU)  compute  residual  line\n");
    SHOWN(SUMMARY(METRICS("1", "1"),
                  "{\"0\": {\"metrics\": " METRICS("40", "10") "}, \"1\": {\"metrics\": " METRICS("40", "30") "}}"),
          NULL, "waited for data 50 % of the time", "the wait is the mean of 2 ranks\n", "rank 1  40.00ms     30.00ms");
    SHOWN(SUMMARY(METRICS("null", "null"), "{}"), NULL, "verdict: This log does not record the wait for data.\n");
}

/* ---- logs without the wait ---- */

Test(log_trainers, transformers_4_and_5)
{
    SHOWN("{'loss': 1.4795, 'grad_norm': 2.8784291744232178, 'learning_rate': 4.375e-05, 'epoch': 0.3125}\n"
          "\r 62%|██████▎   | 20/32 [00:00<00:00, 411.41it/s]\r{'eval_loss': 1.59, 'eval_runtime': 0.0029, "
          "'eval_samples_per_second': 21918.466, 'eval_steps_per_second': 2739.808, 'epoch': 1.0}\n"
          "{'train_runtime': 0.0514, 'train_samples_per_second': 2488.867, 'train_steps_per_second': 622.217, "
          "'train_loss': 1.37, 'epoch': 2.0}\n",
          NULL, "dictionaries of the Trainer of transformers, 3 rows\n",
          "verdict: This log does not record the wait for data.\n", "the run took 0.0514s with 622.2 steps/s",
          "to measure it: `python -m weir watch SCRIPT ...`, or loader = weir.watch(loader)\n",
          "epoch   loss    eval  samples/s    train  samples/s  steps/s  line\n");
    SHOWN("{'loss': '0.6132', 'grad_norm': '0.5325', 'learning_rate': '2.813e-05', 'epoch': '0.9375'}\n"
          "{'train_runtime': '0.4057', 'train_samples_per_second': '315.5', 'train_steps_per_second': '78.87', "
          "'train_loss': '1.327', 'epoch': '2'}\n",
          "--json", "\"data_bound\": null,", "\"name\": \"transformers\"", "\"label\": \"0.9375\"", "\"loss\": 0.6132,",
          "\"train_steps_per_second\": 78.87");
}

Test(log_trainers, progress_bars)
{
    SHOWN(
        "\rEpoch 0:   0%|          | 0/100 [00:00<?, ?it/s]\rEpoch 0:  20%|██        | 20/100 [00:10<00:40,  1.90it/s]"
        "\rVal: |          | 3/? [00:01<?, 2.50s/it]\rEpoch 0: 100%|██████████| 100/100 [00:50<00:00,  2.10it/s, "
        "v_num=0]\n\rEpoch 1:   5%|▌         | 5/100 [00:02<00:40,  2.35it/s, loss=0.31]\n"
        "12it [1:00:00, 300.00s/it]\n",
        NULL, "progress bars of tqdm, 4 rows\n", "verdict: This log does not record the wait for data.\n",
        "the longest bar made 0.003333 steps/s in 3600s\n", "Epoch 0   100    100      50s         2     1\n",
        "Val         3      -", "-          12      -", "Epoch 1     5    100");
}

Test(log_trainers, progress_bars_with_scaled_units)
{
    SHOWN("stream: 123kB [00:00, 401kB/s]\r  0%|          | 0/4.00k [00:00<?, ?it/s]\rloss 0.333:  75%|#######5  | "
          "3.00k/4.00k [00:04<00:01,  1.50s/it]\rloss 0.250: 100%|##########| 4.00k/4.00k [00:06<00:00,  1.50s/it]\n",
          NULL, "2 rows\n", "stream      123000      -       0s   401000     1\n",
          "loss 0.250    4000   4000       6s   0.6667     1\n");
}

Test(log_trainers, act)
{
    SHOWN(
        "  0%|          | 0/2000 [00:00<?, ?it/s]\nEpoch 0\nVal loss:   91.53472\nl1: 0.917 kl: 9.062 loss: 91.535 \n"
        "Train loss: 61.82731\nl1: 0.870 kl: 6.096 loss: 61.827 \n\r  0%|          | 1/2000 [00:12<6:39:48, 12.00s/it]"
        "\nEpoch 1\nVal loss:   25.00481\nTrain loss: 20.11111\n\r  0%|          | 2/2000 [00:23<6:20:00, 11.41s/it]\n",
        NULL, "epochs as ACT prints them, 2 rows\n", "verdict: This log does not record the wait for data.\n",
        "epoch  train loss  val loss  duration  line\n", "0           61.83     91.53       12s     3\n",
        "1           20.11        25       11s     9\n");
}

Test(log_trainers, stage_tables_take_precedence)
{
    SHOWN(LEROBOT("1K", "updt_s:0.050 data_s:0.010") HEAD ROW("08_wait_for_data", "5.00", "10") RULE, NULL,
          "plain training log: 1 tables, 0 epochs\n");
    SHOWN(LEROBOT("1K", "updt_s:0.050 data_s:0.010") "Epoch 1/2 总耗时: 30.00s\n", NULL,
          "LeRobot's step lines, 1 row\n", "plain training log: 0 tables, 1 epochs\n");
}

/* ---- the classic table ---- */

Test(log_trainers, chinese_tables)
{
    assert_chinese(LEROBOT("200", "updt_s:0.500 data_s:0.100") LEROBOT("400", "updt_s:0.500 data_s:0.020"),
                   "updt_s                                   | 总计:   200.00s | 调用:    400次 | 平均: 500.00ms\n"
                   "08_wait_for_data                         | 总计:    24.00s | 调用:    400次 | 平均:  60.00ms\n");
    assert_chinese(MMENGINE("(train) [1][ 10/50]", "0.0200", "0.0100")
                       MMENGINE("(train) [1][ 20/50]", "0.0200", "0.0100"),
                   "time                                     | 总计:     0.40s | 调用:     20次 | 平均:  20.00ms\n"
                   "08_wait_for_data                         | 总计:     0.20s | 调用:     20次 | 平均:  10.00ms\n");
    assert_chinese("|  Action\t|  Mean duration (s)\t|  Total time (s) \t|\n|  run_training_epoch\t|  0.5\t|  1.0\t|\n",
                   "run_training_epoch                       | 总计:     1.00s | 调用:      2次 | 平均: 500.00ms\n");
}

Test(log_trainers, chinese_without_a_number_of_steps)
{
    SHOWN(LEROBOT("1K", "updt_s:0.500 data_s:0.100"), "--lang=zh", "step  data_s  updt_s  line\n");
}

/* ---- means in brackets, rows of several lines, unknown programs ---- */

/* Steps 1 to 10 took 0.900 s, of which 0.500 s waiting; the next epoch took 1 s a step, and waited 0.2 s. */
Test(log_trainers, means_since_the_start_of_an_epoch)
{
#define EPOCH(progress, time, data)                                                                                    \
    "Epoch: " progress "\tTime  0.355 ( " time ")\tData  0.002 ( " data ")\tLoss 7.0434e+00 (7.0799e+00)\n"
    SHOWN(EPOCH("[0][   0/5005]", "6.000", "4.000") EPOCH("[0][   5/5005]", "1.700", "1.100")
              EPOCH("[0][  10/5005]", "1.364", "0.818") "Test: [ 0/196]\tTime  4.8 ( 4.8)\tLoss 2.5 (2.5)\n" //
          EPOCH("[1][   9/5005]", "1.000", "0.200"),
          NULL, "step lines of PyTorch's ImageNet example, 4 rows\n",
          "verdict: Training waited for data 37 % of the time. The mean step took 0.9502s, the mean wait 0.3499s.\n");
    SHOWN("Train: 0 [  50/1251 (  4%)]  Loss: 6.931 (6.94)  Time: 0.912s, 1122.8/s  (0.998s, 1026.1/s)  LR: 1.000e-06"
          "  Data: 0.611 (0.499)\n",
          NULL, "step lines of timm, 1 row\n", "Training waited for data 50 % of the time. ",
          "[  50/1251 (  4%)]  0.499s  0.998s     1\n");
}

Test(log_trainers, rows_of_several_lines)
{
#define ROBOMIMIC(epoch, loading)                                                                                      \
    "Train Epoch " epoch "\n{\n    \"Loss\": 0.31,\n    \"Time_Data_Loading\": " loading                               \
    ",\n    \"Time_Epoch\": 0.5,\n    \"Time_Train_Batch\": 0.1\n}\n\nEpoch 1 Memory Usage: 4312 MB\n"                 \
    "Validation Epoch " epoch "\n{\n    \"Time_Data_Loading\": 0.01,\n    \"Time_Epoch\": 0.02\n}\n"
    SHOWN(ROBOMIMIC("1", "0.4") ROBOMIMIC("2", "0.4"), NULL, "epochs of robomimic, 2 rows\n",
          "verdict: Training waited for data 80 % of the time. The mean epoch took 30s, the mean wait 24s.\n");
    SHOWN("    Learning iteration 3/10\n\n  Total steps: 256\n  Steps per second: 254\n  Collection time: 0.300s\n"
          "  Learning time: 0.100s\n  Iteration time: 0.40s\n",
          NULL, "Training waited for data 75 % of the time. The mean iteration took 0.4s", "no dataset is read\n");
    SHOWN("    Learning iteration 3/10\n  Computation: 83209 steps/s (collection: 0.300s, learning 0.300s)\n", NULL,
          "Training waited for data 50 % of the time.");
}

Test(log_trainers, further_step_lines)
{
    SHOWN("INFO - Training Epoch: [1]  [   1/1412]  iter_time: 0.645(0.645)  data_wait_time: 0.215(0.215)  "
          "data_load_time: 8.745(8.745)\n",
          NULL, "Training waited for data 33 % of the time.");
    SHOWN("\r 10%|# | 10/100 [00:07<01:10,  1.33it/s, data_times=0.300, model_times=0.300]\n", NULL,
          "Training waited for data 50 % of the time.");
    SHOWN("{\"train_loss\": 0.5, \"global_step\": 0, \"epoch\": 0}\n{\"train_loss\": 0.4, \"global_step\": 1, "
          "\"val_loss\""
          ": 0.25, \"epoch\": 0}\n",
          NULL, "logs.json.txt of Diffusion Policy, 2 rows\n", "does not record the wait",
          "1         0         0.4      0.25");
    SHOWN("19:22 [I] step=100 loss=0.1000 lr=2.50e-05 grad_norm=1.23 time=217.4s\n", NULL,
          "step lines of openpi for PyTorch, 1 row\n", "does not record the wait");
}

Test(log_trainers, keys_of_unknown_programs_that_look_like_waits)
{
    SHOWN(
        "it 1 loss=0.3 dataload_time=0.25 data_loss=0.1 step_time=0.9\nit 2 loss=0.2 dataload_time=0.75 train/data_s: "
        "0.5 data: yes\n",
        NULL, "keys that look like waits for data, 2 rows\n", "verdict: This log does not record the wait for data.\n",
        "dataload_time      2   0.5  0.75     1\n", "train/data_s       1   0.5   0.5     2\n");
}
