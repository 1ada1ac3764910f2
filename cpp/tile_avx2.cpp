#include "tile_impl.hpp"

namespace maxmargin {
extern const TileTable tiles_avx2;
constinit const TileTable tiles_avx2 = table;
}  // namespace maxmargin
