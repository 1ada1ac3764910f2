#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "pool.hpp"

using maxmargin::index;
using maxmargin::pool;

namespace {

bool each_once(int n_chunks, int n_threads) {
    std::vector<std::atomic<int>> times(static_cast<std::size_t>(n_chunks));
    pool().run(n_chunks, n_threads, [&](index i) { times[static_cast<std::size_t>(i)] += 1; });
    return std::all_of(times.begin(), times.end(), [](const auto& t) { return t == 1; });
}

// Runs in a forked child; true when the child says so within ten seconds.
bool in_child(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(body() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST("every chunk runs exactly once, for any number of chunks and threads") {
    for (const int n_chunks : {0, 1, 2, 7, 1000})
        for (const int n_threads : {-1, 0, 1, 2, 3, 8}) CHECK(each_once(n_chunks, n_threads));
}

TEST("several threads work at once, and no more than asked for") {
    std::mutex mutex;
    std::condition_variable both;
    std::set<std::thread::id> who;
    pool().run(2, 2, [&](index) {
        std::unique_lock lock(mutex);
        who.insert(std::this_thread::get_id());
        both.notify_all();
        both.wait_for(lock, std::chrono::seconds(10), [&] { return who.size() == 2; });
    });
    CHECK(who.size() == 2);

    who.clear();
    pool().run(100, 2, [&](index) {
        const std::scoped_lock lock(mutex);
        who.insert(std::this_thread::get_id());
    });
    CHECK(who.size() <= 2);
}

TEST("an exception of the body reaches the caller and abandons the rest") {
    for (const int n_threads : {1, 4}) {
        std::atomic<int> ran{0};
        const auto body = [&](index i) {
            ++ran;
            if (i == 3) throw std::runtime_error("three");
        };
        CHECK_THROWS(pool().run(1'000'000, n_threads, body), std::runtime_error);
        CHECK(ran < 1'000'000);
        CHECK(each_once(100, n_threads));
    }
}

TEST("poll is called by the caller alone, and may end the run") {
    for (const int n_threads : {1, 4}) {
        const auto caller = std::this_thread::get_id();
        int polls = 0;
        const std::function<void()> poll = [&] {
            CHECK(std::this_thread::get_id() == caller);
            if (++polls == 2) throw std::domain_error("enough");
        };
        std::atomic<int> running{0};
        const auto body = [&](index) {
            ++running;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            --running;
        };
        CHECK_THROWS(pool().run(100'000, n_threads, body, &poll), std::domain_error);
        CHECK(running == 0);
        CHECK(polls == 2);
    }
}

TEST("a run inside a body is serial, and one inside poll is not") {
    pool().run(4, 2, [&](index) {
        const auto outer = std::this_thread::get_id();
        std::vector<int> order;
        pool().run(20, 4, [&](index i) {
            CHECK(std::this_thread::get_id() == outer);
            order.push_back(static_cast<int>(i));
        });
        CHECK(std::is_sorted(order.begin(), order.end()) && order.size() == 20);
    });
    const std::function<void()> poll = [] { CHECK(each_once(10, 2)); };
    pool().run(4, 2, [](index) {}, &poll);
}

TEST("many threads may run at once") {
    std::vector<std::thread> callers;
    callers.reserve(6);
    for (int t = 0; t < 6; ++t)
        callers.emplace_back([] {
            for (int repeat = 0; repeat < 200; ++repeat) CHECK(each_once(17, 3));
        });
    for (std::thread& caller : callers) caller.join();
}

TEST("a limit holds for every run and can be removed") {
    pool().set_limit(1);
    CHECK(pool().limit() == 1);
    const auto caller = std::this_thread::get_id();
    pool().run(50, 8, [&](index) { CHECK(std::this_thread::get_id() == caller); });
    pool().set_limit(0);
    CHECK(pool().limit() > 1000);
}

TEST("a forked child starts threads of its own") {
    CHECK(each_once(100, 3));
    CHECK(in_child([] { return each_once(100, 3) && each_once(1000, 2); }));
    CHECK(each_once(100, 3));
}

TEST("a fork while others run leaves a child that can run") {
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) pool().run(64, 3, [](index) {});
    });
    for (int i = 0; i < 20; ++i) CHECK(in_child([] { return each_once(50, 2); }));
    stop = true;
    busy.join();
}
