#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pool.hpp"

namespace maxmargin {
namespace {

constexpr index kColumns = 2048;  // of a row, for one thread at a time
constexpr index kAlwaysKept = 4;

}  // namespace

Rows::Rows(const Items& items, double bytes, int threads, const std::function<void()>* poll)
    : items_(&items), n_(items.size()), threads_(threads), poll_(poll), diagonal_(n_), rows_(n_) {
    const double row_bytes = sizeof(double) * std::max(1.0, static_cast<double>(n_));
    const auto most = static_cast<double>(std::max(n_, kAlwaysKept));
    capacity_ = static_cast<index>(std::clamp<double>(bytes / row_bytes, kAlwaysKept, most));
    items.diagonal(diagonal_.data());
}

const double* Rows::row(index i) {
    Row& row = rows_[i];
    if (row.values) {
        ++hits_;
        used_.splice(used_.begin(), used_, row.place);
        return row.values.get();
    }
    ++misses_;
    double* values = admit(i);
    const index chunks = (n_ + kColumns - 1) / kColumns;
    const int threads = items_->concurrent() ? threads_ : 1;
    try {
        pool().run(
            chunks, threads,
            [&](index chunk) {
                const index begin = chunk * kColumns, end = std::min(n_, begin + kColumns);
                items_->tile({&i, 1}, *items_, begin, end, values + begin, n_);
            },
            poll_);
    } catch (...) {  // a row that was abandoned half way is no row
        used_.erase(row.place);
        row.values.reset();
        throw;
    }
    return values;
}

double Rows::value(index i, index j) {
    if (rows_[i].values) return rows_[i].values[j];
    if (rows_[j].values) return rows_[j].values[i];
    double out;
    items_->tile({&i, 1}, *items_, j, j + 1, &out, 1);
    return out;
}

double* Rows::admit(index i) {
    std::unique_ptr<double[]> values;
    if (static_cast<index>(used_.size()) < capacity_) {
        values = std::make_unique_for_overwrite<double[]>(n_);
    } else {
        values = std::move(rows_[used_.back()].values);
        used_.pop_back();
    }
    used_.push_front(i);  // may throw, like the allocation above, and nothing has changed
    rows_[i].values = std::move(values);
    rows_[i].place = used_.begin();
    return rows_[i].values.get();
}

void Rows::inherit(Rows& larger, std::span<const index> kept) {
    std::vector<index> local(larger.n_, -1);
    for (index k = 0; k < n_; ++k) local[kept[k]] = k;
    hits_ = larger.hits_;
    misses_ = larger.misses_;
    while (!larger.used_.empty()) {  // where memory runs out, both caches know what they hold
        const index old = larger.used_.front();
        larger.used_.pop_front();
        const std::unique_ptr<double[]> from = std::move(larger.rows_[old].values);
        if (local[old] < 0 || static_cast<index>(used_.size()) == capacity_) continue;
        double* values = admit(local[old]);
        for (index k = 0; k < n_; ++k) values[k] = from[kept[k]];
        used_.splice(used_.end(), used_, used_.begin());  // keep the order of use
    }
}

}  // namespace maxmargin
