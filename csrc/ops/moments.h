/* Count, mean and sum of squared differences from the mean of some elements, in double on
 * both backends. The includer has DT_FN_LONG, the qualifiers of long functions. */
#ifndef DT_OPS_MOMENTS_H
#define DT_OPS_MOMENTS_H

typedef struct dt_moments {
    double count, mean, square;
} dt_moments;

/* The moments of two sets together (Chan, Golub and LeVeque, 1979). */
DT_FN_LONG dt_moments dt_moments_join(dt_moments a, dt_moments b)
{
    if (a.count == 0)
        return b;
    if (b.count == 0)
        return a;
    double count = a.count + b.count, off = b.mean - a.mean, part = b.count / count;
    dt_moments both = {count, a.mean + off * part,
                       a.square + b.square + off * off * (a.count * part)};
    return both;
}

#endif
