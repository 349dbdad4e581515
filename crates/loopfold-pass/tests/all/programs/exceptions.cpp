// Exceptions: through frames with and without cleanup, caught, rethrown, in constructors, in threads.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Guard {
    int &count;
    explicit Guard(int &count) : count(count) { count++; }
    ~Guard() { count += 10; }
};

struct Early {
    Guard guard;
    std::string name;
    Early(int &count, int n) : guard(count), name(std::to_string(n))
    {
        if (n % 3 == 0)
            throw std::invalid_argument(name);
    }
};

__attribute__((noinline)) static int plain(int n)
{
    if (n == 0)
        throw n;
    return plain(n - 1) + 1;
}

__attribute__((noinline)) static int guarded(int n, int &count)
{
    Guard guard(count);
    if (n % 2)
        return plain(n) + 1;
    return guarded(n - 1, count) + 2;
}

__attribute__((noinline)) static int rethrown(int n, int &count)
{
    try {
        return guarded(n, count);
    } catch (int value) {
        if (n > 2)
            throw std::runtime_error("again");
        return value;
    }
}

static int tried(int n, int &count) try {
    return rethrown(n, count);
} catch (const std::runtime_error &error) {
    count += static_cast<int>(std::string(error.what()).size());
    return -1;
}

struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    explicit Square(int side) : side(side) {}
    int area() const override { return side * side; }
};
struct Line : Shape {
    int area() const override { throw std::logic_error("none"); }
};

static int safe(const Shape &shape) noexcept
{
    try {
        return shape.area();
    } catch (...) {
        return 0;
    }
}

static Guard *global_guard();
static int global_count;
static struct Global {
    Global() { global_count = 3; }
    ~Global() { std::printf("end %d\n", global_count); }
} global;

static Guard *global_guard()
{
    static Guard guard(global_count);
    return &guard;
}

int main()
{
    int count = 0, sum = 0;
    for (int n = 1; n < 6; n++) {
        try {
            sum += tried(n, count);
            Early early(count, n);
            sum += static_cast<int>(early.name.size());
        } catch (const std::exception &error) {
            sum += 1000;
        }
    }
    std::map<std::string, int> map;
    for (const char *word : {"a", "b", "a", "c"})
        map[word] += safe(Square(map[word] + 2)) + safe(Line());
    try {
        std::vector<int>(3).at(7) = 1;
    } catch (const std::out_of_range &) {
        sum++;
    }
    for (int n = 1; n < 4; n++) {
        std::thread thread([n, &sum] {
            int own = 0;
            sum += tried(n, own);
        });
        thread.join();
    }
    global_guard();
    std::printf("%d %d %d\n", sum, count, map["a"]);
}
