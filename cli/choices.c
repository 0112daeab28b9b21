/* The names that --io and --decoder take, from the tables of engines and codecs: help, man pages and completion show
 * them without a list of their own. */
#include "cli/commands.h"
#include "decoders/decoder.h"
#include "io/io.h"

#include <errno.h>
#include <string.h>

char weir_io_choices[WEIR_CHOICES_MAX] = "auto", weir_decoder_choices[WEIR_CHOICES_MAX] = "auto";

static void add(char *choices, const char *name)
{
    size_t used = strlen(choices);
    snprintf(choices + used, WEIR_CHOICES_MAX - used, "|%s", name);
}

void weir_choices_list(void)
{
    const char *name, *summary, *why_not;
    for (int i = 0; weir_io_row(i, &name, &summary, &why_not); i++)
        add(weir_io_choices, name);
    for (int i = 0; weir_decoder_row(i, &name, &summary, &why_not); i++)
        if (weir_decoder_check(name, NULL) != -EINVAL) /* others are found by what frames begin with */
            add(weir_decoder_choices, name);
}
