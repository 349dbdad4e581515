// Pushes events with their times from two threads, folds them while they come, and asks which
// iterations of the loop were slow.
//
// Compile with c++ -std=c++17 push.cpp $(pkg-config --cflags --libs loopfold) -o push
#include <cstdio>
#include <libloopfold.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Close {
    void operator()(loopfold_fold *fold) const { loopfold_close(fold); }
};
using Fold = std::unique_ptr<loopfold_fold, Close>;

void check(loopfold_status status)
{
    if (status > LOOPFOLD_NOTHING)
        throw std::runtime_error(loopfold_message());
}

std::string ask(const Fold &fold, const std::vector<const char *> &question)
{
    char *answer = nullptr;
    check(loopfold_ask(fold.get(), question.size(), question.data(), &answer));
    std::string text(answer);
    loopfold_text_free(answer);
    return text;
}

// A thousand steps of a worker; the 600th takes ten times as long.
void work(loopfold_recorder *recorder, const char *stream)
{
    int64_t now = 0;
    for (int step = 0; step < 1000; step++) {
        const int64_t compute = step == 600 ? 10000 : 1000;
        check(loopfold_push(recorder, stream, "compute", now, compute));
        check(loopfold_push(recorder, stream, "exchange", now + compute, 200));
        now += compute + 200;
    }
}

} // namespace

int main()
try {
    loopfold_recorder *recorder = nullptr;
    check(loopfold_recorder_new("sequitur-runs", &recorder));
    std::thread first(work, recorder, "worker 0"), second(work, recorder, "worker 1");
    first.join();
    second.join();
    loopfold_fold *raw = nullptr;
    check(loopfold_recorder_finish(recorder, &raw));
    const Fold fold(raw);
    std::printf("%s", ask(fold, {"loops"}).c_str());
    std::printf("%s", ask(fold, {"iterations", "--stream", "worker 0"}).c_str());
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
