/* The names that --io and --decoder take, from the tables of engines and codecs: help, man pages and completion show
 * them without a list of their own. */
#include "cli/commands.h"
#include "convert/convert_dataset.h"
#include "io/io.h"
#include "weir/decoder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char weir_io_choices[WEIR_CHOICES_MAX] = "auto", weir_decoder_choices[WEIR_CHOICES_MAX] = "auto";

char weir_convert_notes[4096] = "";

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    va_list args;
    size_t used = strlen(weir_convert_notes);
    va_start(args, format);
    vsnprintf(weir_convert_notes + used, sizeof weir_convert_notes - used, format, args);
    va_end(args);
}

static void list_formats(void)
{
    static const char *const codecs[] = {"jpeg", "jpeg2000", "jpegxl", "raw", "png16", "raw16"};
    const char *name, *summary, *why_not;
    note("Formats of --to, and the codecs that they hold (jpeg: any encoded image of colour, PNG too; raw16, png16:\n"
         "depth):\n");
    for (int i = 0; weir_convert_format(i, &name, &summary, &why_not); i++) {
        note("  %-10s %s:", name, summary);
        for (size_t k = 0; k < sizeof codecs / sizeof codecs[0]; k++)
            if (weir_convert_format_holds(i, codecs[k]))
                note(" %s", codecs[k]);
        note("%s%s%s\n", why_not ? " (not here: " : "", why_not ? why_not : "", why_not ? ")" : "");
    }
    note("\nThe copy grows in DST.partial and gets its name when it is whole and gives the samples of its source. A "
         "call\n"
         "that was interrupted is gone on with by the same call. States and actions keep their type (float16 becomes\n"
         "float32). Encoded frames are copied byte by byte unless --codec asks for others.\n");
}

static void add(char *choices, const char *name)
{
    size_t used = strlen(choices);
    snprintf(choices + used, WEIR_CHOICES_MAX - used, "|%s", name);
}

void weir_choices_list(void)
{
    list_formats();
    const char *name, *summary, *why_not;
    for (int i = 0; weir_io_row(i, &name, &summary, &why_not); i++)
        add(weir_io_choices, name);
    for (int i = 0; weir_decoder_row(i, &name, &summary, &why_not); i++)
        if (weir_decoder_check(name, NULL) != -EINVAL) /* others are found by what frames begin with */
            add(weir_decoder_choices, name);
}
