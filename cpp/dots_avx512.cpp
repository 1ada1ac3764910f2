#include "dots_impl.hpp"

namespace maxmargin {
extern const DotTable dots_avx512;
constinit const DotTable dots_avx512 = dot_table;
}  // namespace maxmargin
