/* The table of cards, in C: for the simulator, and for the binding, which checks a name
 * before the simulator is loaded. */
#ifndef DT_SIM_CARDS_H
#define DT_SIM_CARDS_H

#include <stdbool.h>
#include <stddef.h>

/* The columns are explained in cards.def. */
typedef struct dt_sim_card {
    const char *name;
    int gib;
    double memory;
    double float32, float64, tf32, half, wide;
    int sms, l2, major, minor;
    double pinned, pageable, peer;
    bool nvlink;
    int launch, latency, copy;
    const char *source;
} dt_sim_card;

static const dt_sim_card dt_sim_cards[] = {
#define CARD(...) {__VA_ARGS__},
#include "sim/cards.def"
};
enum { DT_SIM_CARDS = sizeof dt_sim_cards / sizeof *dt_sim_cards };

static inline bool dt_sim_card_skips(char c)
{
    return c == ' ' || c == '-' || c == '_';
}

static inline char dt_sim_card_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Whether the text, without regard to case, spaces, '-' and '_', is the name or, unless
 * `whole`, its first words. */
static inline bool dt_sim_card_is(const char *name, const char *text, size_t length,
                                  bool whole)
{
    const char *end = text + length;
    bool any = false;
    for (; text < end; text++) {
        if (dt_sim_card_skips(*text))
            continue;
        while (dt_sim_card_skips(*name))
            name++;
        if (!*name || dt_sim_card_lower(*name) != dt_sim_card_lower(*text))
            return false;
        name++;
        any = true;
    }
    return any && (!*name || (!whole && *name == ' '));
}

/* The row of a name; -1 if no card has it. "NVIDIA" before the name is left out. */
static inline int dt_sim_card_find(const char *text, size_t length)
{
    static const char brand[] = "nvidia";
    size_t same = 0;
    while (length && *text == ' ')
        text++, length--;
    while (brand[same] && same < length && dt_sim_card_lower(text[same]) == brand[same])
        same++;
    if (!brand[same])
        text += same, length -= same;
    for (int whole = 1; whole >= 0; whole--)
        for (int i = 0; i < DT_SIM_CARDS; i++)
            if (dt_sim_card_is(dt_sim_cards[i].name, text, length, whole))
                return i;
    return -1;
}

#endif
