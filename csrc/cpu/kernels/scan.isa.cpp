/* Scans along rows and down columns, of the types that the core converts others to. */
#include <string.h>

#include "cpu/kernels/kernels.h"

#define DT_FN      static inline __attribute__((always_inline))
#define DT_FN_LONG static inline
#define op_exp     exp
#define op_log1p   log1p
#include "ops/scan.h"

namespace {

/* A long row is scanned in short chains side by side, so that one addition need not wait
 * for the last; each chain then starts exactly where the one before it ended, so that
 * sums of numbers that are not negative never fall. */
constexpr int CHAINS = 8, CHAIN = 64;

template <class Op>
struct State {
    typename Op::State offset, local; /* before the part at hand, and in it */
    static_assert(2 * sizeof(offset) <= sizeof(dt_scan_state), "too large");
    explicit State(const dt_scan_state *from) { memcpy(this, from, sizeof *this); }
    State() : offset(Op::identity()), local(Op::identity()) {}
    void put(dt_scan_state *to) const { memcpy(to, this, sizeof *this); }
};

template <class Op>
void keep(typename Op::State local, dt_scan_state *to)
{
    State<Op> s(to);
    s.local = local;
    s.put(to);
}

template <class Op>
void start_scan(dt_scan_state *state)
{
    State<Op>().put(state);
}

/* Rows of more than `chained` elements are scanned in chains. */
template <class Op, typename T, int64_t chained>
struct Running {
    typedef typename Op::State A;

    static void row(int64_t n, int64_t step, const void *from, void *to, int64_t *,
                    int64_t, int64_t, dt_scan_state *state)
    {
        const T *x = (const T *)from;
        T *out = (T *)to;
        State<Op> s(state);
        int64_t i = 0;
        for (; n > chained && i + CHAINS * CHAIN <= n; i += CHAINS * CHAIN) {
            A local[CHAINS * CHAIN], last[CHAINS];
            const T *base = x + i * step;
            for (int c = 0; c < CHAINS; c++)
                last[c] = Op::identity();
            for (int k = 0; k < CHAIN; k++)
                for (int c = 0; c < CHAINS; c++) {
                    last[c] = Op::combine(last[c], (A)base[(c * CHAIN + k) * step]);
                    local[c * CHAIN + k] = last[c];
                }
            for (int c = 0; c < CHAINS; c++) {
                if (out && step == 1)
                    write_chain(out + i + c * CHAIN, 1, s, local + c * CHAIN);
                else if (out)
                    write_chain(out + (i + c * CHAIN) * step, step, s,
                                local + c * CHAIN);
                s.local = Op::combine(s.local, last[c]);
            }
        }
        for (; i < n; i++) {
            s.local = Op::combine(s.local, (A)x[i * step]);
            if (out)
                out[i * step] = (T)Op::combine(s.offset, s.local);
        }
        s.put(state);
    }
    DT_FN void write_chain(T *out, int64_t step, const State<Op> &s, const A *local)
    {
        for (int k = 0; k < CHAIN; k++)
            out[k * step] = (T)Op::combine(s.offset, Op::combine(s.local, local[k]));
    }
    static void columns(int64_t n, int64_t step, int64_t columns, const void *from,
                        void *to, int64_t *, int64_t, int64_t, dt_scan_state *states)
    {
        A acc[DT_SCAN_COLUMNS];
        for (int64_t j = 0; j < columns; j++)
            acc[j] = Op::identity();
        for (int64_t j = 0; states && j < columns; j++)
            acc[j] = State<Op>(&states[j]).local;
        for (int64_t i = 0; i < n; i++) {
            const T *x = (const T *)from + i * step;
            T *out = (T *)to + i * step;
            DT_VECTOR_LOOP
            for (int64_t j = 0; j < columns; j++) {
                acc[j] = Op::combine(acc[j], (A)x[j]);
                out[j] = (T)acc[j];
            }
        }
        for (int64_t j = 0; states && j < columns; j++)
            keep<Op>(acc[j], &states[j]);
    }
    static void join(dt_scan_state *before, const dt_scan_state *part)
    {
        State<Op> s(before);
        s.offset = Op::combine(s.offset, State<Op>(part).local);
        s.put(before);
    }
};

/* Each step is dear, so a part goes on from the state before it. */
template <typename T>
struct Sequential {
    typedef scan::LogSumExp<double> Op;

    static void row(int64_t n, int64_t step, const void *from, void *to, int64_t *,
                    int64_t, int64_t, dt_scan_state *state)
    {
        State<Op> s(state);
        for (int64_t i = 0; i < n; i++) {
            s.local = Op::combine(s.local, (double)((const T *)from)[i * step]);
            if (to)
                ((T *)to)[i * step] = (T)s.local;
        }
        s.put(state);
    }
    static void columns(int64_t n, int64_t step, int64_t columns, const void *from,
                        void *to, int64_t *, int64_t, int64_t, dt_scan_state *states)
    {
        for (int64_t j = 0; j < columns; j++) {
            dt_scan_state own;
            start_scan<Op>(&own);
            row(n, step, (const T *)from + j, (T *)to + j, nullptr, 0, 0,
                states ? &states[j] : &own);
        }
    }
    static void join(dt_scan_state *before, const dt_scan_state *part)
    {
        State<Op> s(before);
        s.local = Op::combine(s.local, State<Op>(part).local);
        s.put(before);
    }
};

template <typename T, bool min>
struct Extreme {
    typedef scan::Max<T> Op;

    static void row(int64_t n, int64_t step, const void *from, void *to, int64_t *index,
                    int64_t first, int64_t way, dt_scan_state *state)
    {
        State<Op> s(state);
        T best = s.local.value;
        int64_t found = s.local.index;
        for (int64_t i = 0; i < n; i++) {
            const T x = ((const T *)from)[i * step], v = min ? Op::mirror(x) : x;
            if (found < 0 || Op::replaces(v, best)) {
                best = v;
                found = first + i * way;
            }
            if (to)
                ((T *)to)[i * step] = min ? Op::mirror(best) : best;
            if (index)
                index[i * step] = found;
        }
        s.local = {best, found};
        s.put(state);
    }
    static void columns(int64_t n, int64_t step, int64_t columns, const void *from,
                        void *to, int64_t *index, int64_t first, int64_t way,
                        dt_scan_state *states)
    {
        T best[DT_SCAN_COLUMNS];
        int64_t found[DT_SCAN_COLUMNS];
        const bool goes_on = states && State<Op>(states).local.index >= 0;
        for (int64_t j = 0; goes_on && j < columns; j++) {
            const State<Op> s(&states[j]);
            best[j] = s.local.value;
            found[j] = s.local.index;
        }
        for (int64_t i = 0; i < n; i++) {
            const T *x = (const T *)from + i * step;
            T *out = (T *)to + i * step;
            int64_t *indices = index + i * step;
            const bool starts = i == 0 && !goes_on;
            for (int64_t j = 0; j < columns; j++) {
                const T v = min ? Op::mirror(x[j]) : x[j];
                const bool better = starts || Op::replaces(v, best[j]);
                best[j] = better ? v : best[j];
                found[j] = better ? first + i * way : found[j];
                out[j] = min ? Op::mirror(best[j]) : best[j];
                indices[j] = found[j];
            }
        }
        for (int64_t j = 0; states && j < columns; j++)
            keep<Op>({best[j], found[j]}, &states[j]);
    }
    static void join(dt_scan_state *before, const dt_scan_state *part)
    {
        State<Op> s(before);
        s.local = Op::combine(s.local, State<Op>(part).local);
        s.put(before);
    }
};

/* Integers lose nothing in any order; float32 has room in double. A float64 row of
 * common length is added one by one, as NumPy does. */
#define SCAN(op, ...)                                                                  \
    {__VA_ARGS__::row, __VA_ARGS__::columns, start_scan<op>, __VA_ARGS__::join}
#define SUMS(T, A, chained)                                                            \
    SCAN(scan::Sum<A>, Running<scan::Sum<A>, T, chained>),                             \
        SCAN(scan::Product<A>, Running<scan::Product<A>, T, chained>)
#define EXTREMES(T)                                                                    \
    SCAN(scan::Max<T>, Extreme<T, false>), SCAN(scan::Max<T>, Extreme<T, true>)
#define LOGSUMEXP(T) SCAN(scan::LogSumExp<double>, Sequential<T>)

/* In the order of dt_scan_op. */
const dt_scan_kernel scans_int64[] = {
    SUMS(int64_t, int64_t, 64), {}, EXTREMES(int64_t)};
const dt_scan_kernel scans_float32[] = {SUMS(float, double, 64), LOGSUMEXP(float),
                                        EXTREMES(float)};
const dt_scan_kernel scans_float64[] = {SUMS(double, double, 32768), LOGSUMEXP(double),
                                        EXTREMES(double)};

} // namespace

const dt_scan_kernels DT_ISA_NAME(dt_scan) = {scans_int64, scans_float32,
                                              scans_float64};
