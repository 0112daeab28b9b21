/* synth_priv.h: the formats of weir synth as lists of items, and the rendered frames. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_PRIV_H
#define WEIR_DATASETS_SYNTH_SYNTH_PRIV_H

#include "datasets/hdf5/h5_write.h"
#include "datasets/synth/image_write.h"
#include "datasets/synth/scene.h"
#include "datasets/synth/synth.h"

/* ---- frames, rendered and encoded by several threads, returned in order (synth_frames.c) ---- */

enum weir_synth_depth {
    WEIR_DEPTH_NONE,
    WEIR_DEPTH_PNG, /* PNG of 16-bit grey */
    WEIR_DEPTH_RAW, /* uint16_t in host order */
};

struct weir_synth_frames_config {
    const struct weir_scene *scene; /* borrowed until close */
    int episodes, cameras, steps;
    int width, height;
    bool jpeg; /* images are JPEGs; otherwise raw RGB */
    int quality;
    const char *comment;         /* of JPEGs; NULL = none */
    enum weir_synth_depth depth; /* depth image made with each image */
    int threads;                 /* maximum; fewer are started if their memory would exceed about 1.5 GiB */
};

struct weir_synth_frame {
    struct weir_bytes image, depth;
};

struct weir_synth_frames;

int weir_synth_frames_open(struct weir_synth_frames **frames, const struct weir_synth_frames_config *config,
                           struct weir_err *err);
/* Returns the next frame, which is lent until the next call. Frames are ordered by episode, then by camera, then by
 * step. Do not call this function after the last frame. Returns 0, or the error of the thread that made the frame. */
int weir_synth_frames_next(struct weir_synth_frames *frames, const struct weir_synth_frame **frame);
/* Stops the threads; *frames may be NULL. */
void weir_synth_frames_close(struct weir_synth_frames **frames);

/* ---- formats ---- */

enum { WEIR_SYNTH_NAME = 64, WEIR_SYNTH_CAMERAS = 16 };

struct weir_synth_job;

/* The state of one step, from which columns are computed. */
struct weir_synth_moment {
    struct weir_scene_state state;
    int step, steps;
    double rate_hz;
    int arm; /* arm of the column */
};

enum weir_synth_what {
    WEIR_ITEM_GROUP,
    WEIR_ITEM_FLAG,    /* a bool attribute */
    WEIR_ITEM_NUMBER,  /* an int attribute */
    WEIR_ITEM_TEXT,    /* a string attribute */
    WEIR_ITEM_COLUMN,  /* an array with one row per step */
    WEIR_ITEM_RAW,     /* raw frames of every camera, with one row per step */
    WEIR_ITEM_VLEN,    /* encoded frames of every camera, with variable length */
    WEIR_ITEM_STRINGS, /* encoded frames as fixed-length strings of the longest image's size */
    WEIR_ITEM_PADDED,  /* encoded frames as uint8 rows of the longest image's size */
    WEIR_ITEM_LIST,    /* other items, which belong to a group */
    WEIR_ITEM_CALL,
};

/* Values of WEIR_ITEM_NUMBER. */
enum weir_synth_number {
    WEIR_NUMBER_EPISODE,
    WEIR_NUMBER_EPISODES,
    WEIR_NUMBER_STEPS, /* steps of the episode */
    WEIR_NUMBER_TOTAL, /* steps of all episodes */
};

/* One object or attribute of an episode. An episode is written in the order of its items. */
struct weir_synth_item {
    enum weir_synth_what what;
    const char *name;    /* path relative to the episode's group; for frames, the part before the camera's name */
    const char *key;     /* name of an attribute */
    const char *text;    /* value of an attribute; for frames, the part after the camera's name (NULL = none) */
    const char *depth;   /* for frames: the part before the camera's name in depth paths; NULL = no depth */
    const char *lengths; /* for padded frames: array of the images' sizes, cameras x steps; NULL = none */
    int64_t value;       /* value of a flag, or an enum weir_synth_number */
    enum weir_number_type type;
    int width;   /* for columns: values per row; 0 = a one-dimensional array */
    size_t from; /* for columns without fill: offset of their floats in struct weir_scene_state */
    void (*fill)(const struct weir_synth_moment *now,
                 double *row); /* writes one row, which is zeroed before the call */
    int arm;
    bool is_contiguous; /* for columns: contiguous, whatever the format's storage is */
    const struct weir_synth_item *items;
    int n_items, first, count; /* for lists: columns hold `count` steps from `first` on; count 0 = all steps */
    int (*call)(struct weir_synth_job *job, struct weir_err *err);
};

struct weir_synth_format {
    const char *name, *cameras;
    const char *prefix, *suffix; /* optional parts of a camera's name, which are removed; NULL = none */
    double rate_hz;
    bool jpeg;
    const char *comment; /* of JPEGs; NULL = none */
    enum weir_synth_depth depth;
    const char *file, *file_end; /* parts of an episode's path before and after its number; file_end NULL: one file for
                                    all episodes */
    int digits;                  /* minimum number of digits of the episode's number */
    const char *group; /* part of a group's name before the episode's number; NULL: the episode is at the root */
    enum weir_h5w_storage storage, image_storage; /* storage of columns, and of raw frames */
    const struct weir_synth_item *once;           /* written when the file is created */
    int n_once;
    const struct weir_synth_item *items; /* written for each episode */
    int n_items;
};

struct weir_synth_job {
    const struct weir_synth_config *config;
    const struct weir_synth_format *format;
    char camera[WEIR_SYNTH_CAMERAS][WEIR_SYNTH_NAME];
    int n_cameras;
    struct weir_scene *scene;
    struct weir_synth_frames *frames;
    struct weir_h5w *file;
    int episode;
    struct weir_synth_stats stats;
};

/* Returns row i of the table of formats, or NULL past the end. */
const struct weir_synth_format *weir_synth_format_at(int i);

/* Creates the folder path and its parents. */
int weir_synth_make_folders(const char *path, struct weir_err *err);
/* Creates job->file for the job's episode, and writes the format's `once` items. */
int weir_synth_create(struct weir_synth_job *job, struct weir_err *err);
/* Writes the job's episode, taking its frames in order. */
int weir_synth_episode(struct weir_synth_job *job, struct weir_err *err);
/* Reports the job's progress to the caller of weir_synth_write. */
void weir_synth_report(struct weir_synth_job *job);

/* ---- computed columns (synth_columns.c); comments give the number of values per row ---- */

enum { WEIR_FILL_SIMULATION = 1 + 2 * WEIR_SCENE_JOINTS };

void weir_fill_zeros(const struct weir_synth_moment *now, double *row);
void weir_fill_effort(const struct weir_synth_moment *now, double *row); /* WEIR_SCENE_JOINTS values */
void weir_fill_simulation(const struct weir_synth_moment *now,
                          double *row); /* WEIR_FILL_SIMULATION values: time, qpos, qvel */
void weir_fill_success(const struct weir_synth_moment *now, double *row);     /* 1 value: true in the last step */
void weir_fill_root_pose(const struct weir_synth_moment *now, double *row);   /* 7 values: position, quaternion wxyz */
void weir_fill_both_deltas(const struct weir_synth_moment *now, double *row); /* 14 values: the delta of each arm */
void weir_fill_robot_states(const struct weir_synth_moment *now,
                            double *row); /* 9 values: fingers, pose of the gripper */
/* These functions compute values for the column's arm. */
void weir_fill_seven_joints(const struct weir_synth_moment *now, double *row);
void weir_fill_fingers(const struct weir_synth_moment *now, double *row);      /* 2 values: metres from the centre */
void weir_fill_tip_rotation(const struct weir_synth_moment *now, double *row); /* 3 values: rotation vector */
void weir_fill_tip_pose(const struct weir_synth_moment *now, double *row);     /* 6 values: position, rotation vector */
void weir_fill_delta(const struct weir_synth_moment *now,
                     double *row); /* 7 values: change of position and rotation in -1..1, and 1 to close the gripper */
/* AstroBench: 28 values. Joints of the left and the right side alternate: first the seven of each arm, then the seven
 * of each hand. */
void weir_fill_astro_qpos(const struct weir_synth_moment *now, double *row);
void weir_fill_astro_qvel(const struct weir_synth_moment *now, double *row);
void weir_fill_astro_action(const struct weir_synth_moment *now, double *row);
void weir_fill_astro_base(const struct weir_synth_moment *now, double *row);  /* 7 values: position, quaternion xyzw */
void weir_fill_astro_grasp(const struct weir_synth_moment *now, double *row); /* 1 value */
void weir_fill_astro_grippers(const struct weir_synth_moment *now, double *row); /* 2 values */
void weir_fill_astro_target(const struct weir_synth_moment *now, double *row);   /* 16 values */

#endif
