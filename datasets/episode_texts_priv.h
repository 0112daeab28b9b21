/* episode_texts_priv.h: the texts of an episode, packed: "key\0value\0", one after the other. */
#ifndef WEIR_DATASETS_EPISODE_TEXTS_PRIV_H
#define WEIR_DATASETS_EPISODE_TEXTS_PRIV_H

#include "datasets/index.h"

/* How many texts these bytes are; -1 when they are none: another number of strings than of keys and values, a key
 * without a name, more than an episode may have. */
int weir_texts_count(const char *texts, size_t bytes);

#endif
