#include "dots_impl.hpp"

namespace maxmargin {
extern const DotTable dots_avx2;
constinit const DotTable dots_avx2 = dot_table;
}  // namespace maxmargin
