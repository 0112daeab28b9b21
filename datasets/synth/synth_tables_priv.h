/* synth_tables_priv.h: tables with a row per step, of columns that are functions of the scene's state. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_TABLES_PRIV_H
#define WEIR_DATASETS_SYNTH_SYNTH_TABLES_PRIV_H

#include "datasets/synth/synth_layouts_priv.h"

struct weir_synth_moment {
    struct weir_scene_state state;
    int step, steps;
    double rate_hz;
    int arm; /* the column's */
};

struct weir_synth_column {
    const char *name;
    enum weir_number_type type;
    int width; /* 0 = a value a row, (T,) */
    /* row is zeroed. */
    void (*fill)(const struct weir_synth_moment *now, double *row);
    int arm;
};

/* Which rows of an episode, and where to. */
struct weir_synth_rows {
    const char *group; /* that the columns' names follow; "" = they are whole */
    int episode;
    int first, count; /* steps; count 0 = all */
    enum weir_h5w_storage storage;
};

int weir_synth_tables(struct weir_synth_job *job, const struct weir_synth_rows *rows,
                      const struct weir_synth_column *columns, int n, struct weir_err *err);

/* Both arms, WEIR_SCENE_JOINTS wide. */
void weir_fill_qpos(const struct weir_synth_moment *now, double *row);
void weir_fill_qvel(const struct weir_synth_moment *now, double *row);
void weir_fill_action(const struct weir_synth_moment *now, double *row);
void weir_fill_zeros(const struct weir_synth_moment *now, double *row);
/* The column's arm. */
void weir_fill_arm_qpos(const struct weir_synth_moment *now, double *row);    /* 7: joints and gripper */
void weir_fill_arm_action(const struct weir_synth_moment *now, double *row);  /* 7 */
void weir_fill_arm_joints(const struct weir_synth_moment *now, double *row);  /* 6 */
void weir_fill_arm_gripper(const struct weir_synth_moment *now, double *row); /* 1 */
void weir_fill_seven_joints(const struct weir_synth_moment *now, double *row);
void weir_fill_fingers(const struct weir_synth_moment *now, double *row);        /* 2: metres from the middle */
void weir_fill_tip_position(const struct weir_synth_moment *now, double *row);   /* 3 */
void weir_fill_tip_quaternion(const struct weir_synth_moment *now, double *row); /* 4: xyzw */
void weir_fill_tip_rotation(const struct weir_synth_moment *now, double *row);   /* 3: rotation vector */
void weir_fill_tip_pose(const struct weir_synth_moment *now, double *row);       /* 6: position, rotation vector */
/* A step of the gripper in -1..1: position, rotation, and 1 to close the hand. */
void weir_fill_delta(const struct weir_synth_moment *now, double *row);       /* 7 */
void weir_fill_both_deltas(const struct weir_synth_moment *now, double *row); /* 14 */
/* Of the whole scene. */
void weir_fill_simulation(const struct weir_synth_moment *now,
                          double *row);                                   /* WEIR_FILL_SIMULATION: time, qpos, qvel */
void weir_fill_success(const struct weir_synth_moment *now, double *row); /* 1: in the last step */

enum { WEIR_FILL_SIMULATION = 1 + 2 * WEIR_SCENE_JOINTS };

/* Seven joints of a six-jointed arm, as robots with seven would have them. */
void weir_seven_from_six(const float *joint, float *seven);

#endif
