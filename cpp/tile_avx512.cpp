#include "tile_impl.hpp"

namespace maxmargin {
extern const TileTable tiles_avx512;
constinit const TileTable tiles_avx512 = table;
}  // namespace maxmargin
