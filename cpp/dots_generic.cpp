#include "dots_impl.hpp"

namespace maxmargin {
extern const DotTable dots_generic;
constinit const DotTable dots_generic = dot_table;
}  // namespace maxmargin
