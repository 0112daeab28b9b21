/* synth_priv.h: the formats of weir synth as lists of items, and the frames that they take. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_PRIV_H
#define WEIR_DATASETS_SYNTH_SYNTH_PRIV_H

#include "datasets/hdf5/h5_write.h"
#include "datasets/synth/image_write.h"
#include "datasets/synth/scene.h"
#include "datasets/synth/synth.h"

/* ---- frames, rendered and encoded by several threads, returned in order (synth_frames.c) ---- */

enum weir_synth_depth {
    WEIR_DEPTH_NONE,
    WEIR_DEPTH_PNG, /* 16-bit grey */
    WEIR_DEPTH_RAW, /* uint16_t in host order */
};

struct weir_synth_frames_config {
    const struct weir_scene *scene; /* borrowed until close */
    int episodes, cameras, steps;
    int width, height;
    bool jpeg; /* otherwise raw RGB */
    int quality;
    enum weir_synth_depth depth; /* made with each image */
    int threads;                 /* maximum; fewer if their memory would exceed about 1.5 GiB */
};

struct weir_synth_frame {
    struct weir_bytes image, depth;
};

struct weir_synth_frames;

int weir_synth_frames_open(struct weir_synth_frames **frames, const struct weir_synth_frames_config *config,
                           struct weir_err *err);
/* Returns the next frame: all steps of the first camera of the first episode, then the next camera, then the next
 * episode. Lent until the next call. Do not call it after the last frame. Returns 0, or the errno of the thread that
 * made the frame. */
int weir_synth_frames_next(struct weir_synth_frames *frames, const struct weir_synth_frame **frame);
/* Stops the threads; *frames may be NULL. */
void weir_synth_frames_close(struct weir_synth_frames **frames);

/* ---- formats ---- */

enum { WEIR_SYNTH_NAME = 64, WEIR_SYNTH_CAMERAS = 16 };

struct weir_synth_job;

/* State of one step, for columns that are computed. */
struct weir_synth_moment {
    struct weir_scene_state state;
    int step, steps;
    double rate_hz;
    int arm; /* the column's */
};

enum weir_synth_what {
    WEIR_ITEM_GROUP,
    WEIR_ITEM_FLAG,    /* attributes: bool, */
    WEIR_ITEM_NUMBER,  /* int, */
    WEIR_ITEM_TEXT,    /* text */
    WEIR_ITEM_COLUMN,  /* an array with one row per step */
    WEIR_ITEM_RAW,     /* the frames of every camera: pixels, one row per step, */
    WEIR_ITEM_VLEN,    /* encoded images of variable length, */
    WEIR_ITEM_STRINGS, /* strings as long as the longest image, */
    WEIR_ITEM_PADDED,  /* uint8 rows as long as the longest image */
    WEIR_ITEM_LIST,    /* other items, below a group */
    WEIR_ITEM_CALL,
};

/* Values of WEIR_ITEM_NUMBER. */
enum weir_synth_number {
    WEIR_NUMBER_EPISODE,
    WEIR_NUMBER_EPISODES,
    WEIR_NUMBER_STEPS, /* of an episode */
    WEIR_NUMBER_TOTAL, /* steps of all episodes */
};

/* One object or attribute of an episode. An episode is written in the order of its items. */
struct weir_synth_item {
    enum weir_synth_what what;
    const char *name;    /* relative to the episode's group; before the camera's name for frames */
    const char *key;     /* of an attribute */
    const char *text;    /* attribute; frames: what follows the camera's name (NULL: nothing) */
    const char *depth;   /* frames: before the camera's name for depth; NULL: none */
    const char *lengths; /* padded frames: array for the images' sizes, cameras x steps; NULL: none */
    int64_t value;       /* flag, or enum weir_synth_number */
    enum weir_number_type type;
    int width;   /* columns: values per row; 0: an array of one dimension */
    size_t from; /* columns without fill: offset of their floats in struct weir_scene_state */
    void (*fill)(const struct weir_synth_moment *now, double *row); /* row is zeroed */
    int arm;
    bool is_contiguous; /* columns: despite the format's storage */
    const struct weir_synth_item *items;
    int n_items, first, count; /* lists: their columns hold count steps from first on; count 0: all */
    int (*call)(struct weir_synth_job *job, struct weir_err *err);
};

struct weir_synth_format {
    const char *name, *cameras;
    const char *prefix, *suffix; /* optional parts of a camera's name, removed; NULL: none */
    double rate_hz;
    bool jpeg;
    enum weir_synth_depth depth;
    const char *file, *file_end; /* around the episode's number in an episode's path; file_end NULL: one file for all */
    int digits;                  /* minimum digits of that number */
    const char *group;           /* before the episode's number in its group's name; NULL: the root */
    enum weir_h5w_storage storage, image_storage; /* of columns; of raw frames */
    const struct weir_synth_item *once;           /* written when the file is created */
    int n_once;
    const struct weir_synth_item *items; /* of each episode */
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

/* Row i of the table of formats; NULL past the end. */
const struct weir_synth_format *weir_synth_format_at(int i);

/* Creates path with its parents. */
int weir_synth_make_folders(const char *path, struct weir_err *err);
/* Creates job->file for the job's episode, with the format's once. */
int weir_synth_create(struct weir_synth_job *job, struct weir_err *err);
/* Writes the job's episode, taking its frames in order. */
int weir_synth_episode(struct weir_synth_job *job, struct weir_err *err);
/* Reports the job's progress to the caller of weir_synth_write. */
void weir_synth_report(struct weir_synth_job *job);

/* ---- computed columns (synth_columns.c); width in comments ---- */

enum { WEIR_FILL_SIMULATION = 1 + 2 * WEIR_SCENE_JOINTS };

void weir_fill_zeros(const struct weir_synth_moment *now, double *row);
void weir_fill_effort(const struct weir_synth_moment *now, double *row);       /* WEIR_SCENE_JOINTS */
void weir_fill_simulation(const struct weir_synth_moment *now, double *row);   /* time, qpos, qvel */
void weir_fill_success(const struct weir_synth_moment *now, double *row);      /* 1: in the last step */
void weir_fill_root_pose(const struct weir_synth_moment *now, double *row);    /* 7: position, quaternion wxyz */
void weir_fill_both_deltas(const struct weir_synth_moment *now, double *row);  /* 14 */
void weir_fill_robot_states(const struct weir_synth_moment *now, double *row); /* 9: fingers, gripper's pose */
/* The column's arm. */
void weir_fill_seven_joints(const struct weir_synth_moment *now, double *row);
void weir_fill_fingers(const struct weir_synth_moment *now, double *row);      /* 2: metres from the centre */
void weir_fill_tip_rotation(const struct weir_synth_moment *now, double *row); /* 3: rotation vector */
void weir_fill_tip_pose(const struct weir_synth_moment *now, double *row);     /* 6: position, rotation vector */
void weir_fill_delta(const struct weir_synth_moment *now, double *row); /* 7: a step in -1..1: position, rotation, and 1
                                                                         * to close the gripper */
/* AstroBench: 28 joints, left and right alternating: seven of each arm, then seven of each hand. */
void weir_fill_astro_qpos(const struct weir_synth_moment *now, double *row);
void weir_fill_astro_qvel(const struct weir_synth_moment *now, double *row);
void weir_fill_astro_action(const struct weir_synth_moment *now, double *row);
void weir_fill_astro_base(const struct weir_synth_moment *now, double *row);     /* 7: position, quaternion xyzw */
void weir_fill_astro_grasp(const struct weir_synth_moment *now, double *row);    /* 1 */
void weir_fill_astro_grippers(const struct weir_synth_moment *now, double *row); /* 2 */
void weir_fill_astro_target(const struct weir_synth_moment *now, double *row);   /* 16 */

#endif
