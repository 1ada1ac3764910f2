#include "tile_impl.hpp"

namespace maxmargin {
extern const TileTable tiles_generic;
constinit const TileTable tiles_generic = table;
}  // namespace maxmargin
