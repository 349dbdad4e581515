/* A program that is not instrumented, and opens libraries that are. */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    for (int number = 1; number < count; number++) {
        void *const library = dlopen(arguments[number], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return 9;
        ((void (*)(void))dlsym(library, "only_work"))();
        const pid_t child = fork();
        if (child == 0) {
            ((void (*)(void))dlsym(library, "only_work"))();
            ((void (*)(void))dlsym(library, "only_work"))();
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}
