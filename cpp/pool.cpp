#include "pool.hpp"

#include <pthread.h>
#include <signal.h>  // NOLINT: <csignal> has no pthread_sigmask

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

namespace maxmargin {
namespace {

// Whether this thread is inside a body, where further runs are serial.
thread_local bool inside_body = false;

int processors() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

// A run in progress. The body lives on the caller's stack; whoever has claimed a chunk may use it,
// since the caller stays until every claimed chunk is finished. A worker that comes too late
// claims nothing and touches only the job itself, which it owns a share of.
struct Job {
    using Call = void (*)(const void* context, index chunk);

    Job(index n_chunks, Call body_call, const void* body_context)
        : n(n_chunks), call(body_call), context(body_context), unfinished(n_chunks) {}

    // Claims and runs one chunk; false when none is left.
    bool work() {
        const index chunk = next.fetch_add(1);
        if (chunk >= n) return false;
        inside_body = true;
        try {
            call(context, chunk);
        } catch (...) {
            abandon(std::current_exception());
        }
        inside_body = false;
        finished(1);
        return true;
    }

    // Lets nobody claim another chunk; the first error is the one that the caller gets.
    void abandon(std::exception_ptr why) {
        {
            const std::scoped_lock lock(error_mutex);
            if (!error) error = std::move(why);
        }
        const index claimed = next.exchange(n);
        if (claimed < n) finished(n - claimed);
    }

    void finished(index chunks) {
        if (unfinished.fetch_sub(chunks) == chunks) unfinished.notify_all();
    }

    void wait() {
        for (index left = unfinished.load(); left > 0; left = unfinished.load())
            unfinished.wait(left);
    }

    const index n;
    const Call call;
    const void* const context;
    std::atomic<index> next{0};
    std::atomic<index> unfinished;
    std::mutex error_mutex;
    std::exception_ptr error;
    int seats = 0;  // workers that may still join; guarded by the pool's mutex
};

void run_serially(index n_chunks, Job::Call call, const void* context,
                  const std::function<void()>* poll) {
    for (index chunk = 0; chunk < n_chunks; ++chunk) {
        call(context, chunk);
        if (poll != nullptr) (*poll)();
    }
}

}  // namespace

// Shared by the pool and its workers, which are detached: nobody waits for them at exit, and a
// forked child, where they do not exist, simply makes a new state.
struct Pool::State {
    std::mutex mutex;
    std::condition_variable wake;
    std::list<std::shared_ptr<Job>> jobs;  // those with seats left
    int n_workers = 0;
    bool stop = false;

    static void serve(const std::shared_ptr<State>& state) {
        std::unique_lock lock(state->mutex);
        while (true) {
            state->wake.wait(lock, [&] { return state->stop || !state->jobs.empty(); });
            if (state->stop) return;
            std::shared_ptr<Job> job = state->jobs.front();
            if (--job->seats == 0) state->jobs.pop_front();
            lock.unlock();
            while (job->work()) {
            }
            job.reset();
            lock.lock();
        }
    }

    // Starts workers up to n; with fewer, when the system gives no more, work is only slower.
    static void grow(const std::shared_ptr<State>& state, int n) {
        if (state->n_workers >= n) return;
        sigset_t all, before;  // signals are for the program's own threads
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (state->n_workers < n && start_worker(state)) ++state->n_workers;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    static bool start_worker(const std::shared_ptr<State>& state) {
        try {
            std::thread([state] { serve(state); }).detach();
        } catch (const std::system_error&) {
            return false;
        }
        return true;
    }
};

Pool::Pool() : state_(std::make_shared<State>()) {
    // Runs in the child alone, before anything else there: nothing needs to be locked, and what
    // another thread of the parent may have had locked is left behind with the old state.
    pthread_atfork(nullptr, nullptr, [] { pool().state_ = std::make_shared<State>(); });
}

Pool::~Pool() {
    const std::scoped_lock lock(state_->mutex);
    state_->stop = true;
    state_->wake.notify_all();
}

int Pool::limit() const {
    const int n = limit_.load();
    return n > 0 ? n : std::numeric_limits<int>::max();
}

void Pool::set_limit(int n) { limit_.store(n >= 1 && n != processors() ? n : 0); }

void Pool::run_erased(index n_chunks, int n_threads, Call call, const void* context,
                      const std::function<void()>* poll) {
    const auto most = std::min<index>({n_threads, limit(), n_chunks});
    const int helpers = static_cast<int>(most) - 1;
    if (helpers < 1 || inside_body) return run_serially(n_chunks, call, context, poll);

    const std::shared_ptr<State> state = state_;
    const auto job = std::make_shared<Job>(n_chunks, call, context);
    job->seats = helpers;
    {
        const std::scoped_lock lock(state->mutex);
        State::grow(state, helpers);
        state->jobs.push_back(job);
    }
    for (int i = 0; i < helpers; ++i) state->wake.notify_one();

    try {
        while (job->work()) {
            if (poll != nullptr) (*poll)();
        }
    } catch (...) {
        job->abandon(std::current_exception());
    }
    {
        const std::scoped_lock lock(state->mutex);
        state->jobs.remove(job);
    }
    job->wait();
    if (job->error) std::rethrow_exception(job->error);
}

Pool& pool() {
    static Pool the_pool;
    return the_pool;
}

}  // namespace maxmargin

// What threadpoolctl looks for in a loaded library (see threads.py).
#define MAXMARGIN_EXPORT extern "C" __attribute__((visibility("default")))

MAXMARGIN_EXPORT int maxmargin_get_num_threads() {
    return std::min(maxmargin::pool().limit(), maxmargin::processors());
}
MAXMARGIN_EXPORT void maxmargin_set_num_threads(int n) { maxmargin::pool().set_limit(n); }
