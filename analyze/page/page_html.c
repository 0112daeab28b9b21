#include "analyze/page/page_html.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* ---- text ---- */

static void put_code(FILE *out, const char *text, size_t size, uint32_t code)
{
    switch (code) {
    case '&':
        fputs("&amp;", out);
        break;
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '"':
        fputs("&quot;", out);
        break;
    case '\'':
        fputs("&#39;", out);
        break;
    default:
        if (weir_code_is_control(code))
            putc('?', out);
        else
            fwrite(text, 1, size, out);
    }
}

void weir_page_text_n(FILE *out, const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && at < WEIR_PAGE_TEXT) {
        uint32_t code = 0;
        size_t size = weir_utf8_next(text + at, length - at, &code);
        if (size == 0)
            putc('?', out);
        else
            put_code(out, text + at, size, code);
        at += size ? size : 1;
    }
    if (at < length)
        fputs("…", out);
}

void weir_page_text(FILE *out, const char *text)
{
    weir_page_text_n(out, text, strlen(text));
}

/* ---- figures ---- */

/* Whole numbers have no decimals. */
static const char *digits(char text[WEIR_PAGE_FIGURE], double value, const char *unit)
{
    double size = fabs(value), whole = round(value);
    int decimals = size >= 99.95 || size < 0.005 || fabs(value - whole) < 1e-9 * size ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(text, WEIR_PAGE_FIGURE, "%.*f%s", decimals, value, unit);
    return text;
}

const char *weir_page_time(char text[WEIR_PAGE_FIGURE], double seconds)
{
    if (!isfinite(seconds))
        return "–";
    double size = fabs(seconds);
    if (size >= 5999.5)
        return digits(text, seconds / 3600, " h");
    if (size >= 0.9995)
        return digits(text, seconds, " s");
    if (size >= 0.9995e-3)
        return digits(text, 1e3 * seconds, " ms");
    return size >= 0.9995e-6 || size <= 0 ? digits(text, 1e6 * seconds, " µs") : digits(text, 1e9 * seconds, " ns");
}

const char *weir_page_count(char text[WEIR_PAGE_FIGURE], double value)
{
    char plain[WEIR_PAGE_FIGURE];
    if (!(fabs(value) < 1e15))
        return "–";
    int n = snprintf(plain, sizeof plain, "%.0f", value), to = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0 && plain[i - 1] != '-')
            text[to++] = ',';
        text[to++] = plain[i];
    }
    text[to] = '\0';
    return text;
}

const char *weir_page_number(char text[WEIR_PAGE_FIGURE], double value)
{
    return fabs(value) < 99.95 ? digits(text, value, "") : weir_page_count(text, value);
}

double weir_page_part(double part, double whole)
{
    double fraction = whole > 0 ? part / whole : 0;
    return isfinite(fraction) ? fmin(fmax(fraction, 0), 1) : 0;
}

const char *weir_page_percent(char text[WEIR_PAGE_FIGURE], double fraction)
{
    if (!isfinite(fraction))
        return "–";
    double percent = 100 * weir_page_part(fraction, 1);
    snprintf(text, WEIR_PAGE_FIGURE, percent > 0 && percent < 9.95 ? "%.1f %%" : "%.0f %%", percent);
    return text;
}

/* ---- templates ---- */

static void put_figure(FILE *out, char conversion, double value)
{
    char text[WEIR_PAGE_FIGURE];
    fputs(conversion == 'T'   ? weir_page_time(text, value)
          : conversion == 'P' ? weir_page_percent(text, value)
          : conversion == 'N' ? weir_page_number(text, value)
                              : weir_page_count(text, value),
          out);
}

void weir_page_put(FILE *out, const char *template, ...)
{
    va_list args;
    char format[16];
    va_start(args, template);
    for (size_t n; *template; template += n) {
        n = strcspn(template, "%");
        fwrite(template, 1, n, out);
        template += n;
        n = *template ? strcspn(template + 1, "HTPNCdcsfg%") + 2 : 0;
        snprintf(format, sizeof format, "%.*s", (int)n, template);
        char conversion = n > 0 ? format[n - 1] : '\0';
        if (conversion == 'H')
            weir_page_text(out, va_arg(args, const char *));
        else if (conversion && strchr("TPNC", conversion))
            put_figure(out, conversion, va_arg(args, double));
        else if (conversion == 'd' || conversion == 'c')
            fprintf(out, format, va_arg(args, int));
        else if (conversion == 's')
            fputs(va_arg(args, const char *), out);
        else if (conversion == 'f' || conversion == 'g')
            fprintf(out, format, va_arg(args, double));
        else if (conversion)
            putc('%', out);
    }
    va_end(args);
}

void weir_page_base64(FILE *out, const unsigned char bytes[32])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 32; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | (i + 2 < 32 ? bytes[i + 2] : 0u);
        putc(letters[three >> 18 & 63], out);
        putc(letters[three >> 12 & 63], out);
        putc(letters[three >> 6 & 63], out);
        putc(i + 2 < 32 ? letters[three & 63] : '=', out);
    }
}

void weir_page_bar(FILE *out, double fraction, const char *class)
{
    fprintf(out,
            "<svg class=\"bar\" width=\"100%%\" height=\"10\" aria-hidden=\"true\"><rect class=\"%s\" width=\"%.2f%%\" "
            "height=\"10\"/></svg>",
            class, 100 * weir_page_part(fraction, 1));
}
