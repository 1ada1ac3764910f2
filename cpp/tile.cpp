// Which instruction set computes the tiles and the dot products: the best that the processor has.
#include "tile.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "dots.hpp"

namespace maxmargin {

extern const TileTable tiles_generic;
extern const DotTable dots_generic;
#ifdef MAXMARGIN_HAVE_AVX2
extern const TileTable tiles_avx2;
extern const DotTable dots_avx2;
#endif
#ifdef MAXMARGIN_HAVE_AVX512
extern const TileTable tiles_avx512;
extern const DotTable dots_avx512;
#endif

namespace {

struct Level {
    const char* name;
    const TileTable* tiles;
    const DotTable* dots;
    bool available;
};

Level choose() {
    // The best first; the flags of the compiler for each stand in CMakeLists.txt.
    const Level levels[] = {
#ifdef MAXMARGIN_HAVE_AVX512
        {"avx512", &tiles_avx512, &dots_avx512,
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("fma")},
#endif
#ifdef MAXMARGIN_HAVE_AVX2
        {"avx2", &tiles_avx2, &dots_avx2,
         __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
#endif
        {"generic", &tiles_generic, &dots_generic, true},
    };
    const char* value = std::getenv("MAXMARGIN_ISA");
    const std::string_view wanted = value == nullptr ? "" : value;
    std::string available;
    for (const Level& level : levels) {
        if (!level.available) continue;
        if (wanted.empty() || wanted == level.name) return level;
        available += available.empty() ? level.name : std::string(", ") + level.name;
    }
    throw std::runtime_error("the environment variable MAXMARGIN_ISA is '" + std::string(wanted) +
                             "', and this build on this processor has: " + available +
                             ". Set it to one of these, or unset it.");
}

const Level& chosen() {
    static const Level level = choose();
    return level;
}

}  // namespace

const TileTable& tiles() { return *chosen().tiles; }
const DotTable& row_functions() { return *chosen().dots; }
const char* instruction_set() { return chosen().name; }

}  // namespace maxmargin

extern "C" __attribute__((visibility("default"))) const char* maxmargin_instruction_set() {
    return maxmargin::instruction_set();
}
