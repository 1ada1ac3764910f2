#include "part.hpp"

#include <algorithm>
#include <utility>

namespace maxmargin {
namespace {

template <class T>
std::vector<T> gather(const std::vector<T>& from, const std::vector<index>& at) {
    std::vector<T> out(at.size());
    std::transform(at.begin(), at.end(), out.begin(), [&](index i) { return from[i]; });
    return out;
}

}  // namespace

Restriction restrict(const Part& whole, std::vector<index> variables) {
    Restriction out;
    out.variables = std::move(variables);
    std::sort(out.variables.begin(), out.variables.end());

    std::vector<index> local(whole.n, -1);
    for (index v : out.variables) {
        local[whole.item[v]] = 0;
        if (!whole.minus.empty()) local[whole.minus[v]] = 0;
    }
    for (index i = 0; i < whole.n; ++i) {
        if (local[i] < 0) continue;
        local[i] = static_cast<index>(out.items.size());
        out.items.push_back(i);
    }

    Part& part = out.part;
    part.c = gather(whole.c, out.variables);
    part.linear = gather(whole.linear, out.variables);
    part.lower = gather(whole.lower, out.variables);
    part.upper = gather(whole.upper, out.variables);
    part.ridge = gather(whole.ridge, out.variables);
    part.channel = gather(whole.channel, out.variables);
    part.group = gather(whole.group, out.variables);
    part.item = gather(local, gather(whole.item, out.variables));
    if (!whole.minus.empty()) part.minus = gather(local, gather(whole.minus, out.variables));

    part.n = static_cast<index>(out.items.size());
    part.channels = whole.channels;
    part.groups = whole.groups;
    part.scores.resize(part.n * part.channels);
    for (index ch = 0; ch < part.channels; ++ch)
        for (index i = 0; i < part.n; ++i)
            part.scores[ch * part.n + i] = whole.scores[ch * whole.n + out.items[i]];
    return out;
}

void restore(const Restriction& from, Part& whole) {
    const Part& part = from.part;
    for (index v = 0; v < part.size(); ++v) whole.c[from.variables[v]] = part.c[v];
    for (index ch = 0; ch < part.channels; ++ch)
        for (index i = 0; i < part.n; ++i)
            whole.scores[ch * whole.n + from.items[i]] = part.scores[ch * part.n + i];
}

}  // namespace maxmargin
