// One pool of threads for the whole process.
//
// Work comes as `n_chunks` numbered chunks that may run in any order. They are claimed one by one
// from an atomic counter, by the calling thread and by workers that the system has woken: a caller
// that runs out of chunks waits for those that somebody is working on, never for a thread that has
// not started. What a chunk computes must not depend on who claimed it; then results are the same
// bits for any number of threads.
//
// Threads are started when first needed and forgotten in a forked child, which starts its own.
// Cost of a run: one allocation, and one wake-up per worker asked for; nothing for one thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <type_traits>

#include "kernel.hpp"

namespace maxmargin {

class Pool {
  public:
    // Runs body(0), ..., body(n_chunks - 1) on at most n_threads threads, the calling one included,
    // and returns when all are done. After each of its own chunks the calling thread calls `poll`.
    // An exception from the body or from poll abandons the chunks not yet claimed; it is rethrown
    // here when the running ones are done. Any number of threads may call at once; a run inside a
    // body is serial.
    template <class F>
    void run(index n_chunks, int n_threads, F&& body, const std::function<void()>* poll = nullptr) {
        using Body = std::remove_reference_t<F>;
        run_erased(
            n_chunks, n_threads,
            [](const void* context, index chunk) {
                (*static_cast<Body*>(const_cast<void*>(context)))(chunk);
            },
            &body, poll);
    }

    // The most threads that any run may use; without a limit, the largest int. Setting less than 1,
    // or exactly the number of processors, removes it: threadpoolctl puts back what it found.
    int limit() const;
    void set_limit(int n);

    Pool();
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

  private:
    using Call = void (*)(const void* context, index chunk);
    struct State;

    void run_erased(index n_chunks, int n_threads, Call call, const void* context,
                    const std::function<void()>* poll);

    std::shared_ptr<State> state_;
    std::atomic<int> limit_{0};  // 0: none
};

Pool& pool();

}  // namespace maxmargin
