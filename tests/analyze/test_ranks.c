/* The table over ranks: records as text, verdicts of made-up tables for each cause, and sessions over a fake store. */
#include "analyze/ranks/rank_record.h"
#include "analyze/ranks/rank_session.h"
#include "analyze/ranks/rank_verdict.h"
#include "tests/fakes/fake_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 4 };

/* Sentences stay on one line. */
static void wide(void)
{
    setenv("COLUMNS", "1000", 1);
}
TestSuite(ranks, .init = wide);
TestSuite(rank_session, .init = wide);

/* ---- made-up tables ---- */

struct table {
    struct weir_rank ranks[N];
    struct weir_rank_record records[N];
    struct weir_rank_verdict verdict;
};

static void add_stage(struct weir_rank_record *record, const char *name, const char *side, double s)
{
    struct weir_rank_stage *stage = &record->stages[record->n_stages++];
    snprintf(stage->name, sizeof stage->name, "%s", name);
    snprintf(stage->side, sizeof stage->side, "%s", side);
    stage->s = s;
}

/* Four equal ranks of a synchronous loop: steps of 50 ms, 1 ms of them waiting for data, 20 ms of own work. */
static void make_even(struct table *table)
{
    *table = (struct table){0};
    for (int r = 0; r < N; r++) {
        struct weir_rank_record *record = &table->records[r];
        *record = (struct weir_rank_record){.table = 1,
                                            .epoch_first = 1,
                                            .epoch_last = 5,
                                            .steps = 100,
                                            .step_s = 0.050 + 0.0001 * r,
                                            .data_s = 0.001,
                                            .own_s = 0.020,
                                            .core_wait_s = 0.001,
                                            .work_s = 0.040,
                                            .compute_s = 0.060,
                                            .read_s = 0.004,
                                            .core_wait = 0.02,
                                            .machine_cores = 4,
                                            .cores = 4,
                                            .others_cores = 0.1,
                                            .device_bytes_per_s = -1};
        add_stage(record, "03b_image_decode", "worker", 0.030);
        add_stage(record, "03c_read_bytes", "worker", 0.004);
        add_stage(record, "20_train_forward_pass", "consumer", 0.048);
        table->ranks[r] = (struct weir_rank){.rank = r, .pid = 100 + r, .epoch = 5, .record = record};
        snprintf(table->ranks[r].host, WEIR_RANK_HOST, "node%d", r / 2);
    }
}

static const char *judge(struct table *table, const struct weir_rank_history *history)
{
    static char text[20000];
    FILE *out = fmemopen(text, sizeof text, "w");
    weir_rank_verdict_make(&table->verdict, table->ranks, N, history);
    weir_rank_table_print(out, &table->verdict, table->ranks, N);
    fclose(out);
    return text;
}

static void expect_slow(struct table *table, int rank, enum weir_cause cause, const char *words)
{
    const char *text = judge(table, NULL);
    cr_assert(table->verdict.finding == WEIR_RANKS_SLOW && table->verdict.slow, "%s", text);
    cr_expect(table->verdict.slow->rank == rank, "rank %d: %s", table->verdict.slow->rank, text);
    cr_expect(table->verdict.cause.cause == cause, "%s: %s",
              weir_cause_name(WEIR_SUBJECT_RANK, table->verdict.cause.cause), text);
    cr_expect(strstr(text, words), "no \"%s\" in: %s", words, text);
}

Test(ranks, even)
{
    struct table table;
    make_even(&table);
    const char *text = judge(&table, NULL);
    cr_expect(table.verdict.finding == WEIR_RANKS_EVEN && table.verdict.synchronous && !table.verdict.blind);
    cr_expect(strstr(text, "no rank is slow") && strstr(text, "epochs 1-5"), "%s", text);
    for (int r = 0; r < N; r++)
        table.records[r].data_s = 0.015;
    text = judge(&table, NULL);
    cr_expect(strstr(text, "no rank is slow") && strstr(text, "all ranks wait for data 30 %"), "%s", text);
}

/* In a synchronous loop all steps take equally long; the rank that waits for data does not wait for the others. */
Test(ranks, data)
{
    struct table table;
    make_even(&table);
    table.records[2].data_s = 0.020;
    table.records[2].stages[0].s = 0.070;
    table.records[2].work_s = 0.080;
    snprintf(table.records[2].slow_file, sizeof table.records[2].slow_file, "episode_7.hdf5");
    expect_slow(&table, 2, WEIR_CAUSE_MORE_DATA, "03b_image_decode takes 70.00ms");
    cr_expect(table.verdict.synchronous && strstr(judge(&table, NULL), "rank 2 on node1 holds the others up"));
    cr_expect(strstr(judge(&table, NULL), "episode_7.hdf5"));
}

Test(ranks, storage)
{
    struct table table;
    make_even(&table);
    table.records[1].data_s = 0.020;
    table.records[1].read_s = table.records[1].stages[1].s = 0.044;
    table.records[1].work_s = 0.080;
    expect_slow(&table, 1, WEIR_CAUSE_STORAGE, "slow storage; 03c_read_bytes takes 44.00ms");
}

Test(ranks, step)
{
    struct table table;
    make_even(&table);
    table.records[3].own_s = 0.045;
    expect_slow(&table, 3, WEIR_CAUSE_STEP, "cause: its step");
}

Test(ranks, host)
{
    struct table table;
    make_even(&table);
    table.records[1].data_s = 0.020;
    table.records[1].core_wait = 0.45;
    table.records[1].stalled_s = 0.030;
    table.records[1].others_cores = 1.9;
    expect_slow(&table, 1, WEIR_CAUSE_NEIGHBOURS, "waits for a core 45 % of its working time");

    make_even(&table);
    table.records[1].data_s = 0.020;
    table.records[1].cores = 1;
    expect_slow(&table, 1, WEIR_CAUSE_FEWER_CORES, "1 core, the other ranks have 4");

    make_even(&table);
    table.records[0].own_s = 0.040;
    table.records[0].throttled = 0.5;
    table.records[0].stalled_s = 0.040;
    table.records[0].quota_cores = 0.5;
    expect_slow(&table, 0, WEIR_CAUSE_QUOTA, "the CPU quota (0.5 cores) stops it 50 %");

    make_even(&table); /* the loop's own work takes longer because it waits for a core */
    table.records[0].own_s = 0.040;
    table.records[0].core_wait_s = 0.021;
    table.records[0].stalled_s = 0.021;
    table.records[0].core_wait = 0.5;
    table.records[0].others_cores = 2;
    expect_slow(&table, 0, WEIR_CAUSE_NEIGHBOURS, "other processes use 2.0 of 4 cores");

    make_even(&table); /* more to compute, so it also waits for cores more often */
    table.records[2].data_s = 0.020;
    table.records[2].work_s = 0.090;
    table.records[2].compute_s = 0.110;
    table.records[2].stalled_s = 0.020;
    table.records[2].core_wait = 0.25;
    table.records[2].others_cores = 3;
    expect_slow(&table, 2, WEIR_CAUSE_MORE_DATA, "cause: data");

    make_even(&table); /* cores are short for all, and waits end late: the others' stalls exceed their work */
    for (int r = 0; r < N; r++) {
        table.records[r].compute_s = 0.012;
        table.records[r].stalled_s = 0.070;
        table.records[r].others_cores = 3.5;
    }
    table.records[2].data_s = 0.020;
    table.records[2].work_s = 0.330;
    table.records[2].compute_s = 0.120;
    table.records[2].stalled_s = 0.240;
    table.records[2].core_wait = 0.7;
    expect_slow(&table, 2, WEIR_CAUSE_MORE_DATA, "cause: data");
}

/* Ranks that do not wait for each other: the slow one has the longest step. */
Test(ranks, independent)
{
    struct table table;
    make_even(&table);
    table.records[2].step_s = 0.100;
    table.records[2].data_s = 0.051;
    table.records[2].stages[0].s = 0.090;
    expect_slow(&table, 2, WEIR_CAUSE_MORE_DATA, "is slow: its step takes 100.00ms, the others' median is 50");
    cr_expect(!table.verdict.synchronous);

    make_even(&table);
    table.records[1].step_s = 0.100;
    table.records[1].stages[2].s = 0.098;
    expect_slow(&table, 1, WEIR_CAUSE_STEP, "20_train_forward_pass takes 98.00ms");

    make_even(&table); /* 8 % is not slow */
    table.records[1].step_s = 0.054;
    judge(&table, NULL);
    cr_expect(table.verdict.finding == WEIR_RANKS_EVEN);
}

/* With loops that spin in collectives, only data waits tell ranks apart, and the verdict says what it cannot see. */
Test(ranks, spinning)
{
    struct table table;
    make_even(&table);
    for (int r = 0; r < N; r++)
        table.records[r].own_s = table.records[r].step_s - table.records[r].data_s;
    const char *text = judge(&table, NULL);
    cr_expect(table.verdict.finding == WEIR_RANKS_EVEN && table.verdict.blind);
    cr_expect(strstr(text, "cannot show"), "%s", text);
    table.records[2].data_s = 0.020;
    table.records[2].own_s = table.records[2].step_s - 0.020;
    table.records[2].work_s = 0.080;
    expect_slow(&table, 2, WEIR_CAUSE_MORE_DATA, "rank 2 on node1");
}

Test(ranks, changing)
{
    struct table table;
    struct weir_rank_history history = {0};
    make_even(&table);
    for (int r = 0; r < N; r++)
        table.records[r].data_s = 0.012;
    table.records[2].data_s = 0.030;
    weir_rank_history_add(&history, 0, 0.3);
    judge(&table, &history);
    cr_expect(table.verdict.finding == WEIR_RANKS_SLOW, "two tables are too few");
    weir_rank_history_add(&history, 3, 0.3);
    const char *text = judge(&table, &history);
    cr_expect(table.verdict.finding == WEIR_RANKS_CHANGING);
    cr_expect(strstr(text, "loading is too slow on all ranks: the slowest rank changes (now 2; 3 different"), "%s",
              text);
    history = (struct weir_rank_history){.n = 3, .slow = {2, 0, 2}, .data_wait = {0.3, 0.3, 0.3}};
    judge(&table, &history);
    cr_expect(table.verdict.finding == WEIR_RANKS_SLOW, "rank 2 is slow in most tables");
    for (int i = 0; i < 3 * WEIR_RANK_TABLES; i++)
        weir_rank_history_add(&history, i, 0.1);
    cr_expect(history.n == WEIR_RANK_TABLES && history.slow[WEIR_RANK_TABLES - 1] == 3 * WEIR_RANK_TABLES - 1);
}

Test(ranks, missing)
{
    struct table table;
    make_even(&table);
    table.records[1].data_s = 0.020;
    table.records[1].work_s = 0.080;
    table.ranks[2].presence = WEIR_RANK_DIED;
    table.ranks[2].epoch = 4;
    table.ranks[2].record = NULL;
    table.ranks[3] = (struct weir_rank){.rank = 3, .presence = WEIR_RANK_SILENT, .epoch = 4, .quiet_s = 30, .pid = 77};
    snprintf(table.ranks[3].host, WEIR_RANK_HOST, "node9");
    const char *text = judge(&table, NULL);
    cr_expect(table.verdict.finding == WEIR_RANKS_SLOW && table.verdict.slow->rank == 1, "%s", text);
    cr_expect(strstr(text, "rank 3 on node9 (PID 77) has not reported since epoch 4 (30 s)"), "%s", text);
    cr_expect(strstr(text, "rank 2 on node1 (PID 102) has died; it has not reported since epoch 4"), "%s", text);
    table.ranks[1].presence = WEIR_RANK_NEVER;
    table.ranks[1].record = NULL;
    text = judge(&table, NULL);
    cr_expect(table.verdict.finding == WEIR_RANKS_FEW && strstr(text, "1 rank has reported"), "%s", text);
    table.ranks[0].record = NULL;
    judge(&table, NULL);
    cr_expect(table.verdict.finding == WEIR_RANKS_FEW && table.verdict.reported == 0);
    weir_rank_verdict_make(&table.verdict, NULL, 0, NULL);
    cr_expect(table.verdict.finding == WEIR_RANKS_FEW);
}

Test(ranks, json)
{
    struct table table;
    char text[40000] = "";
    make_even(&table);
    table.records[2].data_s = 0.020;
    table.ranks[3].presence = WEIR_RANK_DIED;
    table.ranks[3].record = NULL;
    judge(&table, NULL);
    FILE *out = fmemopen(text, sizeof text, "w");
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_rank_table_json(&json, &table.verdict, table.ranks, N);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fclose(out);
    cr_expect(strstr(text, "\"finding\":\"slow-rank\",\"rank\":2,\"host\":\"node1\",\"cause\":\"data\""), "%s", text);
    cr_expect(strstr(text, "\"name\":\"waiting for data\",\"median_s\":0.001,\"worst_s\":0.02,\"skew\":20,\"rank\":2"));
    cr_expect(strstr(text, "\"missing\":\"rank 3 on node1 (PID 103) has died") && strstr(text, "\"record\":null"));
}

/* ---- records as text ---- */

Test(rank_record, survives_text)
{
    struct weir_rank_status status, read;
    struct table table;
    char text[16000];
    make_even(&table);
    table.records[1].others_cores = -1;
    snprintf(table.records[1].slow_file, sizeof table.records[1].slow_file, "a file with spaces.hdf5");
    weir_rank_status_here(&status, 3, 8);
    for (int i = 0; i < WEIR_RANK_RECORDS + 2; i++) {
        table.records[1].table = i + 1;
        weir_rank_status_add(&status, &table.records[1]);
    }
    weir_rank_status_write(&status, text, sizeof text);
    cr_assert(weir_rank_status_read(&read, text) == 0, "%s", text);
    cr_expect(read.rank == 3 && read.world_size == 8 && read.pid == getpid() && read.start == status.start);
    cr_expect(strcmp(read.host, status.host) == 0 && strcmp(read.place, status.place) == 0 && !read.ended);
    cr_assert(read.n_records == WEIR_RANK_RECORDS && read.records[0].table == 3);
    const struct weir_rank_record *last = &read.records[WEIR_RANK_RECORDS - 1];
    cr_expect(last->table == WEIR_RANK_RECORDS + 2 && last->epoch_last == 5 && last->steps == 100);
    cr_expect(fabs(last->step_s - 0.0501) < 1e-7 && last->others_cores == -1 && last->cores == 4);
    cr_expect(strcmp(last->slow_file, "a file with spaces.hdf5") == 0 && last->slow_worker[0] == '\0');
    cr_expect(last->n_stages == 3 && strcmp(last->stages[2].name, "20_train_forward_pass") == 0);
    cr_expect(strcmp(last->stages[2].side, "consumer") == 0 && fabs(last->stages[2].s - 0.048) < 1e-7);
    status.n_records = 1; /* stages are left out, rather than half a text written */
    weir_rank_status_write(&status, text, sizeof text);
    char small[16000];
    weir_rank_status_write(&status, small, strlen(text));
    cr_expect(weir_rank_status_read(&read, small) == 0 && read.n_records == 1 && read.records[0].n_stages < 3);
}

/* Texts that are cut, changed or hostile are refused or bounded. */
Test(rank_record, damaged_texts)
{
    struct weir_rank_status status, read;
    struct table table;
    char text[16000], damaged[16000];
    make_even(&table);
    weir_rank_status_here(&status, 1, 4);
    weir_rank_status_add(&status, &table.records[0]);
    weir_rank_status_write(&status, text, sizeof text);
    size_t length = strlen(text);
    for (size_t n = 0; n < length - 1; n++) {
        snprintf(damaged, n + 1, "%s", text);
        cr_expect(weir_rank_status_read(&read, damaged) == -EBADMSG, "%zu bytes", n);
    }
    srand(33);
    for (int i = 0; i < 20000; i++) {
        memcpy(damaged, text, length + 1);
        for (int j = 0; j < 1 + i % 5; j++)
            damaged[(size_t)rand() % length] = (char)(1 + rand() % 255);
        if (weir_rank_status_read(&read, damaged) < 0)
            continue;
        cr_assert(read.n_records <= WEIR_RANK_RECORDS && read.rank >= 0);
        for (int r = 0; r < read.n_records; r++) {
            struct weir_rank ranks[2] = {{.record = &table.records[0]}, {.rank = 1, .record = &read.records[r]}};
            struct weir_rank_verdict verdict;
            cr_assert(read.records[r].n_stages <= WEIR_RANK_STAGES && read.records[r].step_s > 0);
            weir_rank_verdict_make(&verdict, ranks, 2, NULL);
            cr_assert(isfinite(verdict.excess_s) && isfinite(verdict.data_wait));
        }
    }
    cr_expect(weir_rank_status_read(&read, "weir-rank 1\nrank 2\nnew_member x\nrecord\nsteps 0\nend\n") == 0 &&
                  read.n_records == 0,
              "a record without steps is dropped, and unknown lines are skipped");
    cr_expect(weir_rank_status_read(&read, "weir-rank 2\nrank 2\nend\n") == -EBADMSG, "another version");
}

/* A process of this machine that has ended is recognised by its PID and start time. */
Test(rank_record, dead_processes)
{
    struct weir_rank_status status;
    weir_rank_status_here(&status, 0, 2);
    cr_expect(!weir_rank_status_dead(&status));
    status.start++;
    cr_expect(weir_rank_status_dead(&status), "the PID belongs to a later process");
    status.place[0] ^= 1;
    cr_expect(!weir_rank_status_dead(&status), "on another machine");
    int ready[2];
    cr_assert(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        weir_rank_status_here(&status, 0, 2);
        _exit(write(ready[1], &status, sizeof status) == (ssize_t)sizeof status ? 0 : 1);
    }
    cr_assert(read(ready[0], &status, sizeof status) == (ssize_t)sizeof status && status.pid == child);
    siginfo_t info;
    cr_assert(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0);
    cr_expect(weir_rank_status_dead(&status), "it has not been waited for");
    cr_assert(waitpid(child, NULL, 0) == child);
    cr_expect(weir_rank_status_dead(&status));
}

/* ---- sessions ---- */

static struct weir_rank_session *open_session_at(int port, int rank, double limit_s)
{
    const struct weir_rank_session_config config = {.rank = rank,
                                                    .world_size = N,
                                                    .name = "test",
                                                    .host = "127.0.0.1",
                                                    .port = port,
                                                    .beat_s = 0.02,
                                                    .limit_s = limit_s};
    struct weir_rank_session *session;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert(weir_rank_session_open(&session, &config, &err) == 0 && session, "%s", err.text);
    return session;
}

static struct weir_rank_session *open_session(const struct fake_store *fake, int rank, double limit_s)
{
    return open_session_at(fake_store_port(fake), rank, limit_s);
}

static const char *print(struct weir_rank_session *session)
{
    static char text[20000];
    FILE *out = fmemopen(text, sizeof text, "w");
    weir_rank_session_print(session, out);
    fclose(out);
    return text;
}

Test(rank_session, a_table)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct weir_rank_session *sessions[N];
    struct table table;
    make_even(&table);
    table.records[2].data_s = 0.020;
    table.records[2].work_s = 0.080;
    for (int r = 0; r < N; r++)
        sessions[r] = open_session(fake, r, 600);
    cr_expect(!weir_rank_session_ready(sessions[0]), "nothing has been published");
    for (int t = 0; t < 3; t++) {
        for (int r = 0; r < N; r++)
            weir_rank_session_publish(sessions[r], &table.records[r]);
        cr_expect(!weir_rank_session_ready(sessions[1]), "only rank 0 prints");
        while (!weir_rank_session_ready(sessions[0]))
            usleep(1000);
        const char *text = print(sessions[0]);
        cr_expect(strstr(text, "4 ranks, epochs 1-5: rank 2 on ") && strstr(text, "holds the others up"), "%s", text);
        cr_expect(!weir_rank_session_ready(sessions[0]), "it has been printed");
    }
    for (int r = 0; r < N; r++)
        weir_rank_session_close(&sessions[r]);
    cr_expect(fake_store_blind_gets(fake) == 0);
    fake_store_close(&fake);
}

/* One rank is killed, one never starts: the next table names them, without waiting for the time limit. The child is
 * forked before there are threads: one that held AddressSanitizer's allocator lock would leave it locked in the child.
 */
Test(rank_session, a_killed_rank)
{
    struct table table;
    make_even(&table);
    int ports[2];
    cr_assert(pipe(ports) == 0);
    pid_t child = fork();
    if (child == 0) {
        int port;
        cr_assert(read(ports[0], &port, sizeof port) == (ssize_t)sizeof port);
        struct weir_rank_session *session = open_session_at(port, 2, 600);
        weir_rank_session_publish(session, &table.records[2]);
        pause();
        _exit(0);
    }
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    int port = fake_store_port(fake);
    cr_assert(write(ports[1], &port, sizeof port) == (ssize_t)sizeof port);
    struct weir_rank_session *zero = open_session(fake, 0, 600), *one = open_session(fake, 1, 600),
                             *three = open_session(fake, 3, 600);
    weir_rank_session_publish(zero, &table.records[0]);
    weir_rank_session_publish(one, &table.records[1]);
    weir_rank_session_publish(three, &table.records[3]);
    while (!weir_rank_session_ready(zero))
        usleep(1000);
    cr_expect(strstr(print(zero), "no rank is slow"));
    kill(child, SIGKILL);
    cr_assert(waitpid(child, NULL, 0) == child);
    for (int r = 0; r < N; r++)
        table.records[r].epoch_last = 6;
    weir_rank_session_publish(zero, &table.records[0]);
    weir_rank_session_publish(one, &table.records[1]);
    weir_rank_session_close(&three);
    while (!weir_rank_session_ready(zero))
        usleep(1000);
    const char *text = print(zero);
    cr_expect(strstr(text, "has died; it has not reported since epoch 5"), "%s", text);
    cr_expect(strstr(text, "has ended and has not reported since epoch 5"), "%s", text);
    weir_rank_session_close(&one);
    weir_rank_session_close(&zero);
    fake_store_close(&fake);
}

/* A rank that never reports is named after the time limit; a store that is gone is named too. */
Test(rank_session, time_limit)
{
    struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
    struct table table;
    make_even(&table);
    struct weir_rank_session *zero = open_session(fake, 0, 0.3);
    weir_rank_session_publish(zero, &table.records[0]);
    while (!weir_rank_session_ready(zero))
        usleep(1000);
    const char *text = print(zero);
    cr_expect(strstr(text, "rank 1 has never reported (") && strstr(text, "1 rank has reported"), "%s", text);
    fake_store_close(&fake);
    do { /* until the thread has noticed */
        weir_rank_session_publish(zero, &table.records[0]);
        weir_rank_session_finish(zero, 600);
        cr_assert(weir_rank_session_ready(zero));
    } while (!strstr(print(zero), "ranks cannot be read: "));
    weir_rank_session_close(&zero);
}

/* Nobody waits for a store that ended, or that never began, until the time limit. */
Test(rank_session, a_store_that_is_gone)
{
    struct table table;
    make_even(&table);
    for (int begins = 0; begins < 2; begins++) {
        struct fake_store *fake = fake_store_open(FAKE_SINCE_2_2, false);
        int port = fake_store_port(fake);
        if (!begins)
            fake_store_close(&fake);
        struct weir_rank_session *zero = open_session_at(port, 0, 600);
        weir_rank_session_publish(zero, &table.records[0]);
        if (begins)
            fake_store_close(&fake);
        weir_rank_session_publish(zero, &table.records[0]);
        weir_rank_session_finish(zero, 600);
        cr_expect(weir_rank_session_lost(zero));
        cr_assert(weir_rank_session_ready(zero));
        cr_expect(strstr(print(zero), "ranks cannot be read: "));
        weir_rank_session_close(&zero);
    }
}

Test(rank_session, no_store_and_one_rank)
{
    struct weir_rank_session *session = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    unsetenv("MASTER_ADDR");
    cr_expect(
        weir_rank_session_open(&session, &(struct weir_rank_session_config){.world_size = 1, .name = "t"}, &err) == 0 &&
        !session);
    cr_expect(weir_rank_session_open(&session, &(struct weir_rank_session_config){.world_size = 2, .name = "t"},
                                     &err) == -ENOENT &&
              !session);
    cr_expect(strstr(err.text, "no table over ranks during the run: MASTER_ADDR is not set"), "%s", err.text);
    weir_rank_session_publish(NULL, NULL); /* no effect */
    weir_rank_session_finish(NULL, 1);
    cr_expect(!weir_rank_session_ready(NULL));
    weir_rank_session_close(&session);
}
