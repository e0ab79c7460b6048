#include "tensor/schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char *const type_words[DT_NPARAM_TYPES] = {
#define TYPE(ID, word, expected) word,
    DT_PARAM_TYPES(TYPE)
#undef TYPE
};

const char *dt_schema_skip(const char *c)
{
    while (*c == ' ')
        c++;
    return c;
}

const char *dt_schema_word_end(const char *c)
{
    while (isalnum((unsigned char)*c) || *c == '_')
        c++;
    return c;
}

const char *dt_schema_type_end(const char *c)
{
    c = dt_schema_word_end(c);
    return c + (*c == '?');
}

static int malformed(const char *text)
{
    return dt_fail(DT_ERROR_RUNTIME, "pydevtensor: malformed schema: %s", text);
}

/* Copies the word at c, of length letters, into name; false where it is too long. */
static bool copy_name(char *name, const char *c, size_t length)
{
    if (!length || length >= DT_MAX_NAME)
        return false;
    memcpy(name, c, length);
    name[length] = '\0';
    return true;
}

/* Reads the default value at c into p and returns its end. */
static const char *read_default(const char *c, dt_parameter *p)
{
    p->required = false;
    if (!strncmp(c, "None", 4)) {
        p->none = true;
        return c + 4;
    }
    if (!strncmp(c, "True", 4) || !strncmp(c, "False", 5)) {
        p->fallback = dt_scalar_bool(*c == 'T');
        return dt_schema_word_end(c);
    }
    if (*c == '\'' || *c == '(') {
        const char *end = strchr(c + 1, *c == '(' ? ')' : '\'');
        return end ? end + 1 : c + strlen(c);
    }
    char *end;
    double number = strtod(c, &end);
    bool whole = true;
    for (const char *d = c; d < end; d++)
        whole &= *d == '-' || isdigit((unsigned char)*d);
    p->fallback = whole ? dt_scalar_int((int64_t)number) : dt_scalar_float(number);
    return end;
}

/* Reads one parameter, "name: Type" or "name: Type? = default"; NULL if malformed. */
static const char *read_parameter(const char *c, dt_parameter *p, bool rest)
{
    const char *name = c;
    c = dt_schema_word_end(c);
    if (!copy_name(p->name, name, (size_t)(c - name)) || *c != ':')
        return NULL;
    p->type = DT_NPARAM_TYPES;
    p->required = true;
    const char *word = dt_schema_skip(c + 1);
    c = dt_schema_word_end(word);
    for (int t = 0; t < DT_NPARAM_TYPES; t++)
        if (strlen(type_words[t]) == (size_t)(c - word) &&
            !memcmp(type_words[t], word, (size_t)(c - word)))
            p->type = (dt_param_type)t;
    if (p->type == DT_NPARAM_TYPES)
        return NULL;
    if (rest && (p->type == DT_PARAM_TENSORS || p->type == DT_PARAM_ANY))
        p->required = false; /* any number of them, 0 too */
    p->none = *c == '?';
    c = dt_schema_skip(dt_schema_type_end(word));
    return *c == '=' ? dt_schema_skip(read_default(dt_schema_skip(c + 1), p)) : c;
}

int dt_schema_parse(dt_schema *out, const char *text, int most, const char **end)
{
    dt_parameter parameters[DT_MAX_ARGUMENTS];
    int ints = 0;
    memset(parameters, 0, sizeof parameters);
    memset(out, 0, sizeof *out);
    out->positional = out->rest = out->out = -1;
    const char *c = dt_schema_word_end(text);
    /* Messages name _cross_entropy() as users do. */
    text += text[0] == '_' && text[1] != '_';
    if (*c != '(' || !copy_name(out->name, text, (size_t)(c - text)))
        return malformed(text);
    for (c = dt_schema_skip(c + 1); *c && *c != ')';) {
        bool rest = *c == '*';
        if (rest) {
            out->positional = out->count;
            c++;
            if (*c == ',') { /* a bare `*`: keywords follow */
                c = dt_schema_skip(c + 1);
                continue;
            }
            out->rest = out->count;
        }
        if (out->count == most)
            return malformed(text);
        dt_parameter *p = &parameters[out->count];
        c = read_parameter(c, p, rest);
        ints += dt_param_is_per_dim(p->type);
        if (!c || (*c != ',' && *c != ')') || ints > DT_MAX_INTS)
            return malformed(text);
        /* A body that takes a tuple writes into it itself. */
        if (!strcmp(p->name, "out") && p->type != DT_PARAM_TENSORS)
            out->out = out->count;
        out->count++;
        out->required += p->required;
        if (*c == ',')
            c = dt_schema_skip(c + 1);
    }
    if (*c != ')')
        return malformed(text);
    c = dt_schema_skip(c + 1);
    if (!strncmp(c, "->", 2)) {
        out->results = dt_schema_skip(c + 2);
        const char *bar = strstr(c, " | ");
        c = bar ? bar + 1 : c + strlen(c);
    }
    if (out->positional < 0)
        out->positional = out->count;
    size_t bytes = (size_t)(out->count ? out->count : 1) * sizeof *parameters;
    out->parameters = malloc(bytes);
    if (!out->parameters)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory is left for a schema");
    memcpy(out->parameters, parameters, bytes);
    *end = c;
    return 0;
}
