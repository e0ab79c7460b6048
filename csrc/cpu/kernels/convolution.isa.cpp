/* The kernels of convolution.h, for one instruction set. */
#include "cpu/kernels/convolution_depthwise.h"
#include "cpu/kernels/convolution_product.h"
#include "cpu/kernels/convolution_weight.h"

namespace {

template <typename T>
constexpr dt_patch_kernels kernels_of = {TILE_ROWS,
                                         Stage<T>::lanes,
                                         Product<T>::pack,
                                         Product<T>::run,
                                         Depthwise<T>::run,
                                         WeightGradient<T>::run,
                                         WeightGradient<T>::add_ranges};

} // namespace

const dt_convolution_kernels DT_ISA_NAME(dt_convolution) = {kernels_of<float>,
                                                            kernels_of<double>};
